"""One file per format that can be recognised."""
