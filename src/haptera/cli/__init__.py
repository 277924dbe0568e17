"""The command line: it reads what people type, asks a parent over REST, and tells the answer."""
