"""The HTTP service behind ``fathomer serve``.

A request passes these modules in order::

    server.py      the socket, connections and shutdown
    middleware.py  host, path and token checks; security headers
    routes.py      the URL map; predict.py answers POST /v1/predict
    request.py     body, JSON and tokenisation, each within limits.py
    batcher.py     one queue for all connections, one thread per copy of the model
    worker.py      copies of the model in other processes
"""
