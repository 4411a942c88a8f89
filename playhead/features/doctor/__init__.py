"""The doctor of a store: what is wrong with it, and mending what can be mended. It also works where no store opens."""
