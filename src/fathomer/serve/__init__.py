"""The HTTP service behind ``fathomer serve``.

A prediction passes these modules in order::

    server.py            the socket, connections and shutdown
    middleware.py        host, path and token checks; security headers
    predict_endpoint.py  answers POST /v1/predict; called by the middleware, not by a route
    request.py           body, JSON and tokenisation, each within limits.py
    batcher.py           one queue for all connections, one thread per copy of the model
    worker.py            copies of the model in other processes

The middleware hands all other requests to ``routes.py``, which also builds the application.
"""
