"""The manifest: a file that declares the teams of one workspace, their roles and how many replicas each has.

Others may use `reading.read_manifest`, `reading.read_declared` and `reading.ManifestRefused`; `values.Declared`;
`schema.schema`. Nothing is imported here: who asks for one of them does not wait for the others.
"""
