"""What client and server share: the bodies of requests and answers."""
