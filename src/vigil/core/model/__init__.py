"""What there is: frozen values, without a decision in them."""
