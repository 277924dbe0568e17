"""A web server that answers with its node's name, on the port that is desired or 9000."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Says the node's name to whoever asks."""

    def do_GET(self) -> None:
        """Answer with the name."""
        body = os.environ["HAPTERA_NODE"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    address = (os.environ["HAPTERA_ADDRESS"], int(os.environ.get("HAPTERA_PORT", "9000")))
    with HTTPServer(address, Handler) as server:
        server.serve_forever()
