"""The daemon: feeds the machine what happens, and carries out what it asks for (DESIGN 2, 3).

Imports point one way: base ← sense ← act ← supervisor ← serve; tell ← base; start ← act; then `daemon` and `wiring`."""
