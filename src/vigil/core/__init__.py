"""The core: all of Vigil's policy, without input, output, clock or chance (DESIGN 3).

Imports point one way: model ← rules ← book, events, effects ← handlers ← machine. A topic has the same word on every floor:
`model/death.py` is what it is, `rules/death.py` decides, `handlers/death.py` does what follows."""
