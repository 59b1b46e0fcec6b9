# SPDX-License-Identifier: Apache-2.0
"""A front of Debian's docker-registry that counts requests and, if requested, keeps referrers as in
distribution-spec 1.1, which Debian's registry (2.8) does not.

    with registry_front.running(registry, referrers=True) as front:
        berth.ok("match", f"{front.address}/some/name")
        front.requests   # [(method, path, bytes answered)]
    front.before = lambda method, path: …   # called at each request, in its thread
"""

import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.error
import urllib.request

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = re.compile(r"/v2/(.+)/manifests/([^/?]+)$")
REFERRERS = re.compile(r"/v2/(.+)/referrers/(sha256:[0-9a-f]{64})(?:\?artifactType=(.*))?$")
PASSED_ON = ("Content-Type", "Accept", "Content-Length", "Content-Range", "Range")


class Exchange(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *arguments):
        pass

    def answer(self, status, headers, body):
        self.server.requests.append((self.command, self.path, len(body)))
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "date",
                                    "server"):
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = self.path if self.path.startswith("http") else self.server.upstream.url + self.path
        headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
        request = urllib.request.Request(url, data=body or None, method=self.command,
                                         headers=headers)
        if self.command in ("PUT", "POST", "PATCH") and not body:
            request.data = b""
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, dict(answer.headers), answer.read(), body
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read(), body

    def handle_one(self):
        self.server.before(self.command, self.path)
        listed = REFERRERS.match(self.path)
        if self.server.referrers is not None and listed:
            name, subject, wished = listed.groups()
            wished = urllib.request.unquote(wished) if wished else None
            found = [entry for entry in self.server.referrers.get((name, subject), [])
                     if wished in (None, entry["artifactType"])]
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": found}
            self.answer(200, {"Content-Type": INDEX, "OCI-Filters-Applied": "artifactType"},
                        json.dumps(index).encode())
            return
        status, headers, answered, body = self.pass_on()
        put = MANIFEST.match(self.path) if self.command == "PUT" else None
        if self.server.referrers is not None and put and status == 201:
            subject = json.loads(body).get("subject")
            if subject:
                self.server.file(put[1], body, subject["digest"])
                headers["OCI-Subject"] = subject["digest"]
        self.answer(status, headers, answered)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_one


class Front(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream, referrers):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.upstream = upstream
        self.requests = []
        self.before = lambda method, path: None
        self.referrers = {} if referrers else None
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def file(self, name, body, subject):
        manifest = json.loads(body)
        entry = {"mediaType": manifest["mediaType"], "size": len(body),
                 "digest": "sha256:" + hashlib.sha256(body).hexdigest(),
                 "artifactType": manifest.get("artifactType") or manifest["config"]["mediaType"],
                 "annotations": manifest.get("annotations", {})}
        entries = self.referrers.setdefault((name, subject), [])
        if entry not in entries:
            entries.append(entry)


@contextlib.contextmanager
def running(upstream, referrers=True):
    front = Front(upstream, referrers)
    thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield front
    finally:
        front.shutdown()
        front.server_close()
        thread.join()
