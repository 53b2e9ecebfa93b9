"""The application that gunicorn serves and celery runs: strings of 600 to 5,000 bytes, of which a tenth stays for a while."""

import hashlib

KEPT = []


def work(number):
    made = [bytes([n % 251]) * (600 + (n * number) % 4400) for n in range(2000)]
    KEPT.append(made[::10])
    del KEPT[:-20]
    return hashlib.md5(b"".join(made)).hexdigest()


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [work(int(environ["QUERY_STRING"])).encode()]
