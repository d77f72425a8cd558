"""Each part of the engine on its own."""
