"""Run every test with the shapes of `fathomer.nn` checked: jaxtyping's annotations are executed."""

import jaxtyping

# Before anything imports fathomer.nn: the hook rewrites modules while they are loaded.
jaxtyping.install_import_hook("fathomer.nn", "beartype.beartype")
