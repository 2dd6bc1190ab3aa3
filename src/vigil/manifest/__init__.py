"""The manifest: a file that declares the teams of one workspace, their roles and their numbers of replicas.

Others may use `reading.read_manifest`, `reading.read_declared` and `reading.ManifestRefused`; `values.DeclaredRole`;
`schema.schema`. This file imports nothing: a caller of one does not wait for the others.
"""
