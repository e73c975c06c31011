"""Writes models in which the rewrites of `onnx/src/prepare.rs` find something, or nearly, with ONNX Runtime's outputs.

    python onnx/tests/make_rule_cases.py FILE

A case named `RULE: …` must be rewritten by that rule; one named `no RULE: …` must not. `onnx/tests/rules.rs` runs them.
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from make_node_tests import double, field, value

RNG = np.random.default_rng(1)
OUT = bytearray()
COUNT = 0


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def case(name, nodes, inputs, constants, output="y", opset=20):
    """`nodes`: (operator, inputs, output, attributes); texts of inputs and outputs are separated by spaces."""
    global COUNT
    nodes = [helper.make_node(op, a.split(), b.split(), **(c[0] if c else {})) for op, a, b, *c in nodes]
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in output.split()]
    tensors = [numpy_helper.from_array(np.asarray(x), n) for n, x in constants.items()]
    model = helper.make_model(helper.make_graph(nodes, "g", ports, results, tensors), opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, inputs)
    content = field(1, name.encode()) + field(2, model.SerializeToString())
    content += b"".join(field(3, value(x)) for x in inputs.values()) + b"".join(field(4, value(x)) for x in outputs)
    OUT.extend(field(1, content + double(5, 2e-5) + double(6, 2e-5)))
    COUNT += 1


def number(x, *shape):
    return np.full(shape, x, dtype=np.float32)


x = draw(2, 3, 4)
case("constants: a sum", [("Add", "a b", "c"), ("Mul", "x c", "y")], {"x": x}, {"a": draw(4), "b": draw(4)})
case("identities: Identity", [("Identity", "x", "a"), ("Relu", "a", "y")], {"x": x}, {})
case("identities: Dropout", [("Dropout", "x", "a"), ("Relu", "a", "y")], {"x": x}, {})
case("identities: Cast twice", [("Cast", "x", "a", {"to": 11}), ("Cast", "a", "b", {"to": 11}), ("Cast", "b", "y", {"to": 1})], {"x": x}, {})
case("no identities: of an output", [("Identity", "x", "y")], {"x": x}, {})
case("transposes: two", [("Transpose", "x", "a", {"perm": [1, 2, 0]}), ("Transpose", "a", "y", {"perm": [0, 2, 1]})], {"x": x}, {})
case("transposes: to nothing", [("Transpose", "x", "a", {"perm": [1, 2, 0]}), ("Transpose", "a", "b", {"perm": [2, 0, 1]}), ("Relu", "b", "y")], {"x": x}, {})

image = draw(2, 3, 6, 7)
norm = {"s": draw(4), "o": draw(4), "m": draw(4), "v": np.abs(draw(4)) + 0.5, "w": draw(4, 3, 3, 3), "c": draw(4)}
conv = ("Conv", "x w c", "a", {"pads": [1, 1, 1, 1]})
case("batch-norms: after Conv", [conv, ("BatchNormalization", "a s o m v", "y")], {"x": image}, norm)
case("batch-norms: without a bias", [("Conv", "x w", "a"), ("BatchNormalization", "a s o m v", "y", {"epsilon": 0.01})], {"x": image}, {k: norm[k] for k in "somvw"})
case("no batch-norms: after Relu", [conv, ("Relu", "a", "b"), ("BatchNormalization", "b s o m v", "y")], {"x": image}, norm)
case("no batch-norms: used twice", [conv, ("BatchNormalization", "a s o m v", "b"), ("Add", "a b", "y")], {"x": image}, norm)
case("no batch-norms: an output", [conv, ("BatchNormalization", "a s o m v", "y")], {"x": image}, norm, "y a")
for op in ["Relu", "Sigmoid", "Tanh", "HardSwish", "Mish", "Gelu"]:
    case(f"activations: {op} after Conv", [conv, (op, "a", "y")], {"x": image}, {k: norm[k] for k in "wc"})
case("no activations: used twice", [conv, ("Relu", "a", "b"), ("Add", "a b", "y")], {"x": image}, {k: norm[k] for k in "wc"})

case("biases: of the last axis", [("MatMul", "x w", "a"), ("Add", "a c", "y")], {"x": x}, {"w": draw(4, 5), "c": draw(5)})
case("biases: before the product", [("MatMul", "x w", "a"), ("Add", "c a", "y")], {"x": x}, {"w": draw(4, 5), "c": draw(5)})
case("activations: Relu after biases", [("MatMul", "x w", "a"), ("Add", "a c", "b"), ("Relu", "b", "y")], {"x": x}, {"w": draw(4, 5), "c": draw(5)})
case("no biases: a number", [("MatMul", "x w", "a"), ("Add", "a c", "y")], {"x": x}, {"w": draw(4, 5), "c": draw(1)})
case("no biases: a matrix", [("MatMul", "x w", "a"), ("Add", "a c", "y")], {"x": x}, {"w": draw(4, 5), "c": draw(3, 5)})

ROOT = np.sqrt(2.0)
for shape in [(), (1,)]:
    one, half, root = number(1, *shape), number(0.5, *shape), number(ROOT, *shape)
    erf = [("Div", "x r", "a"), ("Erf", "a", "b"), ("Add", "b i", "c")]
    constants = {"r": root, "i": one, "h": half}
    case(f"gelu: x first {shape}", [*erf, ("Mul", "x c", "d"), ("Mul", "d h", "y")], {"x": x}, constants)
    case(f"gelu: half first {shape}", [*erf, ("Mul", "x h", "d"), ("Mul", "d c", "y")], {"x": x}, constants)
    case(f"gelu: half of the sum {shape}", [*erf, ("Mul", "c h", "d"), ("Mul", "x d", "y")], {"x": x}, constants)
times = [("Mul", "x r", "a"), ("Erf", "a", "b"), ("Add", "i b", "c"), ("Mul", "c x", "d"), ("Mul", "h d", "y")]
case("gelu: by a factor", times, {"x": x}, {"r": number(1 / ROOT), "i": number(1), "h": number(0.5)})
for what, r, i, h in [("root", 1.413, 1, 0.5), ("one", ROOT, 1.0009, 0.5), ("half", ROOT, 1, 0.5004)]:
    case(f"no gelu: another {what}", [*erf, ("Mul", "x c", "d"), ("Mul", "d h", "y")], {"x": x}, {"r": number(r), "i": number(i), "h": number(h)})
case("no gelu: numbers with axes", [*erf, ("Mul", "x c", "d"), ("Mul", "d h", "y")], {"x": draw(3)}, {"r": number(ROOT, 1, 1, 1), "i": number(1), "h": number(0.5)})
case("no gelu: of another x", [*erf, ("Mul", "z c", "d"), ("Mul", "d h", "y")], {"x": x, "z": draw(2, 3, 4)}, {"r": number(ROOT), "i": number(1), "h": number(0.5)})

case("silu: x first", [("Sigmoid", "x", "a"), ("Mul", "x a", "y")], {"x": x}, {})
case("silu: x last", [("Sigmoid", "x", "a"), ("Mul", "a x", "y")], {"x": x}, {})
case("no silu: of another x", [("Sigmoid", "x", "a"), ("Mul", "z a", "y")], {"x": x, "z": x + 1}, {})

centred = [("ReduceMean", "x axes", "m"), ("Sub", "x m", "d")]
rest = [("ReduceMean", "q axes", "v"), ("Add", "v e", "w"), ("Sqrt", "w", "r"), ("Div", "d r", "n"), ("Mul", "n g", "s"), ("Add", "s b", "y")]
constants = {"axes": np.array([-1]), "e": number(1e-5), "g": draw(4), "b": draw(4), "two": number(2)}
case("layer-norms: by Pow", [*centred, ("Pow", "d two", "q"), *rest], {"x": x}, constants)
case("layer-norms: by Mul", [*centred, ("Mul", "d d", "q"), *rest], {"x": x}, constants)
case("no layer-norms: another axis", [*centred, ("Mul", "d d", "q"), *rest], {"x": draw(2, 4, 4)}, constants | {"axes": np.array([1])})
case("no layer-norms: another power", [*centred, ("Pow", "d two", "q"), *rest], {"x": x}, constants | {"two": number(4)})
case("no layer-norms: epsilon with axes", [*centred, ("Mul", "d d", "q"), *rest], {"x": draw(2, 4)}, constants | {"e": number(1e-5, 1, 1, 1)})
case("no layer-norms: the centred x is used", [*centred, ("Mul", "d d", "q"), *rest[:-1], ("Add", "s b", "t"), ("Add", "t d", "y")], {"x": x}, constants)

q, k, v = draw(2, 3, 4, 8), draw(2, 3, 5, 8), draw(2, 3, 5, 6)
turned = ("Transpose", "k", "t", {"perm": [0, 1, 3, 2]})
plain = [turned, ("MatMul", "q t", "a"), ("Mul", "a f", "b"), ("Softmax", "b", "p"), ("MatMul", "p v", "y")]
masked = [turned, ("MatMul", "q t", "a"), ("Div", "a f", "b"), ("Add", "b mask", "c"), ("Softmax", "c", "p"), ("MatMul", "p v", "y")]
case("attention: scaled", plain, {"q": q, "k": k, "v": v}, {"f": number(0.35)})
case("attention: masked", masked, {"q": q, "k": k, "v": v, "mask": draw(2, 1, 4, 5)}, {"f": number(2.8)})
heads = [("Transpose", "k", "t", {"perm": [0, 2, 3, 1]}), *plain[1:]]
case("attention: heads in the middle", heads, {"q": q, "k": draw(2, 5, 3, 8), "v": v}, {"f": number(0.35)})
case("attention: one head of keys", plain, {"q": q, "k": draw(2, 1, 5, 8), "v": v}, {"f": number(0.35)})
case("attention: one batch of queries", plain, {"q": draw(1, 3, 4, 8), "k": k, "v": v}, {"f": number(0.35)})
case("attention: values of two axes", plain, {"q": q, "k": k, "v": draw(5, 6)}, {"f": number(0.35)})
case("attention: a larger mask", masked, {"q": q[:1], "k": k[:1], "v": v[:1], "mask": draw(2, 3, 4, 5)}, {"f": number(2.8)})
case("no attention: softmax over another axis", [*plain[:3], ("Softmax", "b", "p", {"axis": 2}), plain[4]], {"q": q, "k": k, "v": v}, {"f": number(0.35)})
case("no attention: the weights are an output", plain, {"q": q, "k": k, "v": v}, {"f": number(0.35)}, "y p")

open(sys.argv[1], "wb").write(OUT)
print(COUNT, "cases,", len(OUT), "bytes")
