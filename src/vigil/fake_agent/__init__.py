"""The fake agent: a small scripted program that plays an agent, for the tests and the demo."""
