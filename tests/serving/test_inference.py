import json

import numpy as np
import polars as pl
import pytest
from service import ask

from harmonrank.serving.tensors import Tensor, values_of

INFER = "/v2/models/harmonrank/infer"


def tensors(table, rows=6):
    part = table.head(rows)
    inputs = [
        {"name": n, "datatype": "FP64", "shape": [rows], "data": part[n].to_list()}
        for n in ("p_buy", "p_like")
    ]
    inputs.append(
        {"name": "hour", "datatype": "INT64", "shape": [rows], "data": part["hour"].to_list()}
    )
    inputs.append(
        {"name": "age", "datatype": "BYTES", "shape": [rows], "data": part["age"].to_list()}
    )
    return inputs


def outputs(answer):
    return {part["name"]: part["data"] for part in answer["outputs"]}


def test_json_tensors_are_scored_as_a_table(app, default_model, table):
    status, answer = ask(app, "POST", INFER, {"id": "7", "inputs": tensors(table)})
    assert status == 200, answer
    result = outputs(answer)
    assert result["fused"] == default_model.score(table.head(6)).tolist()
    assert result["like"] == default_model.probabilities(table.head(6))[:, 1].tolist()
    assert list(result) == ["fused", "buy", "like"]
    assert (answer["id"], answer["model_name"]) == ("7", "harmonrank")
    assert answer["model_version"] == app.live.runtime.version


def test_a_tensor_with_null_or_nan_misses_scores(app, default_model, table):
    part = table.head(6).with_columns(p_like=pl.when(pl.int_range(6) > 1).then("p_like"))
    want = default_model.score(part).tolist()
    inputs = tensors(part)
    assert inputs[1]["data"][:2] == [None, None]
    assert outputs(ask(app, "POST", INFER, {"inputs": inputs})[1])["fused"] == want
    blob = part["p_like"].to_numpy().astype("<f8").tobytes()
    size = {"binary_data_size": len(blob)}
    inputs[1] = {"name": "p_like", "datatype": "FP64", "shape": [6], "parameters": size}
    body, headers = binary({"inputs": inputs}, blob)
    assert outputs(ask(app, "POST", INFER, body, headers)[1])["fused"] == want


def test_only_what_is_asked_for_comes_back(app, table):
    body = {"inputs": tensors(table), "outputs": [{"name": "like"}]}
    assert list(outputs(ask(app, "POST", INFER, body)[1])) == ["like"]


def test_single_precision_is_scored_as_such(app, default_model, table):
    inputs = tensors(table)
    for tensor in inputs[:2]:
        tensor["datatype"] = "FP32"
    single = table.head(6).cast({"p_buy": pl.Float32, "p_like": pl.Float32})
    result = outputs(ask(app, "POST", INFER, {"inputs": inputs})[1])["fused"]
    assert result == default_model.score(single).tolist()


def test_weights_and_points_are_parameters(app, default_model, table):
    want = default_model.score(table.head(6), weights={"buy": 9}).tolist()
    for given in ({"buy": 9}, '{"buy": 9}'):
        body = {"inputs": tensors(table), "parameters": {"weights": given}}
        assert outputs(ask(app, "POST", INFER, body)[1])["fused"] == want
    body = {"inputs": tensors(table), "parameters": {"point": "sales"}}
    want = default_model.score(table.head(6), weights={"buy": 3, "like": 0.5}).tolist()
    assert outputs(ask(app, "POST", INFER, body)[1])["fused"] == want


def binary(head, *blobs):
    text = json.dumps(head).encode()
    headers = {"inference-header-content-length": str(len(text))}
    return b"".join([text, *blobs]), headers


def test_metadata_names_the_tensors(app):
    status, result = ask(app, "GET", "/v2/models/harmonrank")
    assert status == 200
    assert [(t["name"], t["datatype"]) for t in result["inputs"]] == [
        ("p_buy", "FP32"),
        ("p_like", "FP32"),
        ("hour", "INT64"),
        ("age", "BYTES"),
    ]
    assert [t["name"] for t in result["outputs"]] == ["fused", "buy", "like"]
    version = result["versions"][0]
    assert ask(app, "GET", f"/v2/models/harmonrank/versions/{version}")[1] == result
    assert "binary_tensor_data" in ask(app, "GET", "/v2")[1]["extensions"]


def changed(place, **change):
    def change_it(inputs):
        inputs[place].update(change)

    return change_it


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (changed(0, shape=[7]), "has shape [7] but 6 values"),
        (changed(0, shape=[6, 1]), "must have shape [n]"),
        (changed(0, shape=[-6]), "expected int >= 0"),
        (changed(0, shape=[10**12]), "at most 100,000"),
        (changed(0, datatype="FP16"), "has the datatype 'FP16'; known:"),
        (changed(0, datatype="INT64"), "expected int, got float"),
        (changed(0, data=["a"] * 6), "expected float | null, got str"),
        (changed(0, data=[1.5] * 6), "lie in [0, 1]"),
        (changed(0, name="p_bye"), "Input 'p_buy' is missing"),
        (changed(3, name="p_buy"), "Two inputs have the same name"),
        (changed(2, data=[2**70] * 6), "Input 'hour'"),
        (changed(3, datatype="INT64", data=[1] * 6), "was text in training"),
        (lambda inputs: inputs.pop(), "Input 'age' is missing"),
        (lambda inputs: inputs.clear(), "Input 'p_buy' is missing"),
        (lambda inputs: inputs[0].pop("data"), "neither `data` nor binary data"),
        (changed(0, parameters={"binary_data_size": 10**15}), "announces 1,000,000,000,000,000"),
        (changed(0, parameters={"binary_data_size": -1}), "must be a number of bytes"),
        (changed(0, parameters={"binary_data_size": "x"}), "must be a number of bytes"),
    ],
)
def test_a_wrong_tensor_is_one_sentence(app, table, change, sentence):
    inputs = tensors(table)
    change(inputs)
    status, answer = ask(app, "POST", INFER, {"inputs": inputs})
    assert status == 400
    assert sentence in answer["error"]


@pytest.mark.parametrize(
    ("blob", "kind", "sentence"),
    [
        (b"\0" * 7, "FP32", "no whole number of FP32 values"),
        (np.full(6, np.inf, "<f4").tobytes(), "FP32", "lie in [0, 1]"),
        (b"\xff\xff\xff\xff", "BYTES", "end in the middle"),
        (b"\x01\x00", "BYTES", "end in the middle"),
        (b"\x01\x00\x00\x00\xff" * 6, "BYTES", "no UTF-8"),
    ],
)
def test_wrong_binary_data_is_one_sentence(app, table, blob, kind, sentence):
    inputs = tensors(table)
    size = {"binary_data_size": len(blob)}
    inputs[0] = {"name": "p_buy", "datatype": kind, "shape": [6], "parameters": size}
    body, headers = binary({"inputs": inputs}, blob)
    status, answer = ask(app, "POST", INFER, body, headers)
    assert status == 400
    assert sentence in answer["error"]


def test_bytes_of_which_one_half_is_the_other_are_read_value_by_value():
    texts = ["", "\0\0\0\0\x08\0\0\0"]
    raw = b"".join(len(text).to_bytes(4, "little") + text.encode() for text in texts)
    assert values_of(Tensor("age", "BYTES", [2]), memoryview(raw)).to_list() == texts


def test_a_wrong_header_length_and_data_that_nobody_wants_are_refused(app, table):
    body, _ = binary({"inputs": tensors(table)}, b"rest")
    for length in ("-1", "x", "999999", "٣", "9" * 5000):
        headers = {"inference-header-content-length": length}
        status, answer = ask(app, "POST", INFER, body, headers)
        assert status == 400
        assert "Inference-Header-Content-Length" in answer["error"]
    status, answer = ask(app, "POST", INFER, *binary({"inputs": tensors(table)}, b"rest"))
    assert "4 bytes follow" in answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/health/live", 200),
        ("GET", "/v2/health/ready", 200),
        ("HEAD", "/v2/health/ready", 200),
        ("GET", "/v2/models/harmonrank/ready", 200),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/harmonrank/versions/99", 404),
        ("GET", "/v2/models/harmonrank/versions", 404),
        ("GET", "/v2/models/harmonrank/nothing", 404),
        ("GET", INFER, 405),
        ("POST", "/metrics", 405),
        ("DELETE", "/v1/rank", 405),
        ("GET", "/nothing", 404),
    ],
)
def test_every_path_has_its_status(app, method, path, status):
    result, answer = ask(app, method, path)
    assert result == status
    if status != 200:
        assert answer["error"].endswith(".")
