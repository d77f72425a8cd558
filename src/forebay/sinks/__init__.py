"""Where rows go; one file per destination."""
