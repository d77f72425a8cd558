"""Random pipelines against a plain-Python model of what they mean.

| file | what it holds |
|---|---|
| model.py | the meaning of every operator in lists and itertools; knows nothing of Forebay |
| chains.py | random chains of operators whose every step makes sense |
| build.py | the same chain as a Forebay dataset, and elements back as plain Python values |
"""
