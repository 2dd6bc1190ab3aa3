"""The configuration file: where it is, what may stand in it, and what it says.

Others may use `finding.find_config`; `loading.ConfigFile` and `loading.ConfigRefused`; `values.Config`, `values.AgentConfig`
and `values.RouteConfig`. This file imports nothing: a command that only asks where the file is does not wait for pydantic."""
