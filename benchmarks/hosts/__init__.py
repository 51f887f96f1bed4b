"""Every framework's integration against a strict model on loopback, beside a plain loop on a session: docs/hosts.md.

`server` is the model and `wires` the formats it speaks, `script` what it says, `ledger` what it counts. Each framework has a
file in `frameworks`; `cases` says what is asked of them, `measure` runs one case, `table` writes the page.
"""
