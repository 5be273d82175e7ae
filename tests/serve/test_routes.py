"""The API as documented, tested against a real process."""

import json
import re

import pytest

import fathomer
from fathomer.predictor import Predictor
from fathomer.serve.limits import Limits
from fathomer.train.fit import fit
from tests.forked import Forked
from tests.serve.process import service
from tests.tiny import TINY, tiny_artifact, tiny_examples


def test_predictions_equal_those_of_the_predictor_in_order(running):
    texts = ["The film was lovely.", "", "bad <b>book</b> \N{GRINNING FACE}", "\0 e\u0301"]
    status, found = running.predict(texts, depths=True)
    expected = [p.to_dict(words=True) for p in Predictor(tiny_artifact()).predict(texts)]
    assert status == 200
    for answer, prediction in zip(found["predictions"], expected, strict=True):
        assert answer["probabilities"] == pytest.approx(prediction.pop("probabilities"), abs=1e-5)
        answer.pop("probabilities")
        assert answer == prediction


def test_words_are_returned_only_on_request_and_depth_can_be_limited(running):
    assert "words" not in running.predict(["good film"])[1]["predictions"][0]
    _, limited = running.predict(["a good film"], depths=True, max_depth=1)
    assert {word["depth"] for word in limited["predictions"][0]["words"]} == {1}


def test_contributions_are_returned_only_on_request(running):
    texts = ["The film was lovely.", ""]
    _, plain = running.predict(texts, depths=True)
    status, found = running.predict(texts, contributions=True)
    assert status == 200
    for answer, expected in zip(
        found["predictions"],
        Predictor(tiny_artifact()).predict(texts, contributions=True),
        strict=True,
    ):
        effects = [word.pop("contribution") for word in answer["words"]]
        assert effects == pytest.approx([w.contribution for w in expected.words], abs=1e-4)
    assert [p["words"] for p in found["predictions"]] == [p["words"] for p in plain["predictions"]]


def test_an_integer_may_be_written_with_a_decimal_point(running):
    assert running.predict(["good"], max_depth=2.0) == running.predict(["good"], max_depth=2)


def test_an_empty_list_of_texts_gets_an_empty_answer(running):
    assert running.predict([]) == (200, {"predictions": []})


def test_a_text_longer_than_the_model_reads_is_marked(running):
    _, found = running.predict(["good " * 51])
    assert found["predictions"][0]["truncated"] is True


def test_the_model_and_its_limits_are_described(running):
    status, _, body = running.ask("GET", "/v1/model")
    found = json.loads(body)
    assert status == 200
    assert found["labels"] == ["negative", "positive"]
    assert found["max_depth"] == 4
    assert found["size"]["hidden_size"] == 12
    assert found["size"]["parameters"] > 100
    assert {"fathomer", "torch"} <= set(found["versions"])
    assert found["limits"] == Limits(body_bytes=50_000, body_seconds=1).to_dict()


def test_health_checks_answer(running):
    assert running.ask("GET", "/v1/health/live")[::2] == (200, b'{"status":"live"}')
    assert running.ask("GET", "/v1/health/ready")[::2] == (200, b'{"status":"ready"}')


def test_metrics_count_requests_words_and_steps(running):
    def metrics():
        _, _, body = running.ask("GET", "/metrics")
        lines = re.findall(r"^(fathomer_\S+) (\S+)$", body.decode(), re.MULTILINE)
        return {name: float(value) for name, value in lines}

    before = metrics()
    running.predict(["one two three", "four"])
    running.ask("GET", "/nowhere/else")
    after = metrics()

    def increase(name):
        return after[name] - before.get(name, 0)

    assert increase('fathomer_requests_total{path="/v1/predict",status="200"}') == 1
    assert increase('fathomer_requests_total{path="other",status="404"}') == 1
    assert increase("fathomer_words_total") == 4
    assert 4 <= increase("fathomer_steps_total") <= 16
    assert increase("fathomer_batch_texts_sum") == 2
    assert 1 <= after["fathomer_mean_depth"] <= 4
    assert after["fathomer_queue_words"] == 0
    assert 'fathomer_request_seconds_bucket{le="+Inf",path="/v1/predict"}' in after
    assert not any("nowhere" in name for name in after)


def test_the_reference_page_loads_no_external_resources(running):
    status, headers, body = running.ask("GET", "/docs")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b"POST /v1/predict" in body
    assert not re.search(rb"<script|https?://|src=", body)
    schema = json.loads(running.ask("GET", "/openapi.json")[2])
    assert set(schema["paths"]) == {
        "/v1/predict",
        "/v1/model",
        "/v1/health/live",
        "/v1/health/ready",
    }


@pytest.mark.parametrize("path", ["/", "/v1/model", "/nowhere", "/v1/predict"])
def test_every_response_has_security_headers(running, path):
    _, headers, _ = running.ask("GET", path)
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers


@pytest.mark.parametrize(
    ("path", "status", "code", "message"),
    [
        ("/nowhere", 404, "not_found", "No such path; /docs lists all of them."),
        ("/v1/predict", 405, "method_not_allowed", "Method not allowed; use POST."),
    ],
)
def test_unknown_paths_and_methods_are_json_errors(running, path, status, code, message):
    found, _, body = running.ask("GET", path)
    assert (found, json.loads(body)) == (status, {"error": {"code": code, "message": message}})


@pytest.mark.parametrize("path", ["/../limits.py", "/%2e%2e/limits.py", "/page/index.html", "/%00"])
def test_only_the_files_of_the_page_are_served(running, path):
    assert running.ask("GET", path)[0] == 404


def test_a_token_protects_everything_but_health_checks_page_and_schema(model, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    with service(model, "--token-file", str(tmp_path / "token")) as guarded:
        for wrong in ({}, {"authorization": "Bearer s3cre"}, {"authorization": "Basic s3cret"}):
            for method, path in (
                ("POST", "/v1/predict"),
                ("GET", "/v1/model"),
                ("GET", "/metrics"),
            ):
                status, headers, body = guarded.ask(method, path, b'{"texts":["a"]}', wrong)
                assert (status, headers["www-authenticate"]) == (401, "Bearer")
                assert json.loads(body)["error"]["code"] == "unauthorized"
                for variant in (f"{path}%0A", f"{path}/", f"{path}%0a%0a", f"/{path}"):
                    assert guarded.ask(method, variant, b'{"texts":["a"]}', wrong)[0] == 404
        for right in ({"authorization": "Bearer s3cret"}, {"authorization": "bearer s3cret"}):
            assert guarded.ask("POST", "/v1/predict", b'{"texts":["a"]}', right)[0] == 200
        for path in ("/v1/health/ready", "/v1/health/live", "/", "/script.js", "/docs"):
            assert guarded.ask("GET", path)[0] == 200
        assert guarded.ask("GET", "/openapi.json")[0] == 200


def test_head_is_answered_like_get_without_a_body(running):
    for path in ("/", "/v1/health/live", "/v1/health/ready", "/v1/model", "/metrics"):
        status, headers, body = running.ask("HEAD", path)
        assert (status, body) == (200, b"")
        assert int(headers["content-length"]) > 0
    assert running.ask("HEAD", "/v1/predict")[0] == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 421), ("evil.example:8000", 421), ("127.0.0.1.evil.example", 421),
     ("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("box", 200)],
)  # fmt: skip
def test_requests_for_foreign_domain_names_are_refused(running, host, status):
    found, headers, _ = running.ask("POST", "/v1/predict", b'{"texts":["a"]}', {"host": host})
    assert found == status
    assert "location" not in headers


def test_a_host_name_can_be_allowed(model, tmp_path):
    with service(model, "--allowed-host", "Texts.Example") as named:
        for host, status in (("texts.example:80", 200), ("other.example", 421)):
            assert named.ask("GET", "/v1/model", headers={"host": host})[0] == status
    (tmp_path / "token").write_text("s3cret")
    with service(model, "--token-file", str(tmp_path / "token")) as guarded:
        right = {"authorization": "Bearer s3cret", "host": "any.example"}
        assert guarded.ask("GET", "/v1/model", headers=right)[0] == 200


def test_a_request_can_set_the_average_depth(budgeted):
    texts = ["the film was not bad, but I did not like the hotel at all"]
    with service(budgeted) as found:
        assert json.loads(found.ask("GET", "/v1/model")[2])["depth_budget"] == 2
        local = fathomer.load(budgeted)
        for settings in ({}, {"depth_budget": 1.5}, {"depth_budget": 6}):
            status, answer = found.predict(texts, depths=True, **settings)
            [expected] = local.predict(texts, **settings)
            assert status == 200
            depths = [word["depth"] for word in answer["predictions"][0]["words"]]
            assert depths == [word.depth for word in expected.words]
        for budget in (0.5, 9.5, True, "2"):
            assert found.predict(texts, depth_budget=budget)[0] == 422


def test_a_model_without_a_table_refuses_depth_budgets(running):
    status, content = running.predict(["good"], depth_budget=2)
    assert (status, content["error"]["code"]) == (422, "no_depth")
    assert "no table of depth budgets" in content["error"]["message"]
    assert json.loads(running.ask("GET", "/v1/model")[2])["depth_budget"] is None


def test_a_model_without_depths_refuses_requests_for_them(tmp_path):
    recipe = TINY.updated({"model": {"name": "bilstm"}, "train": {"epochs": 1}})
    fit(tiny_examples(), recipe).artifact.save(tmp_path / "flat")
    with service(tmp_path / "flat") as flat:
        assert json.loads(flat.ask("GET", "/v1/model")[2])["max_depth"] is None
        assert flat.predict(["good film"])[0] == 200
        _, explained = flat.predict(["good film"], contributions=True)
        assert [word["depth"] for word in explained["predictions"][0]["words"]] == [0, 0]
        for settings in ({"max_depth": 1}, {"depths": True}, {"depth_budget": 2}):
            status, content = flat.predict(["good film"], **settings)
            assert (status, content["error"]["code"]) == (422, "no_depth")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "queue=3"], "unknown setting 'queue'"),
        (["--limit", "queue_words=many"], "--limit queue_words=many: expected name=number"),
        (["--limit", "queue_words=0"], "queue_words must be at least 1"),
        (["--token-file", "missing"], "missing: no such file"),
        (
            ["--token-file", "empty"],
            "empty: expected a token of printable ASCII characters, without spaces",
        ),
    ],
)
def test_a_usage_error_is_one_line(run, model, tmp_path, arguments, message):
    (tmp_path / "empty").write_text(" \n")
    code, out, err = run("serve", str(model), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "Address already in use"),
        ("192.0.2.1", "Cannot assign requested address"),
        ("..", "not a valid host name"),
    ],
)
def test_an_unavailable_address_is_a_one_line_error(running, model, host, reason):
    port = str(running.port)
    with Forked("serve", str(model), "--host", host, "--port", port) as process:
        message = process.stderr.read()
    assert message == f"fathomer: cannot listen on {host} port {port}: {reason}\n"
    assert process.returncode == 2
