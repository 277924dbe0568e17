"""A web server that answers on its node's address with its node's name."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Says the node's name to whoever asks."""

    def do_GET(self) -> None:
        """Answer with the name."""
        body = f"{os.environ['HAPTERA_NODE']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    address = (os.environ["HAPTERA_ADDRESS"], int(os.environ["HAPTERA_PORT"]))
    with ThreadingHTTPServer(address, Handler) as server:
        server.serve_forever()
