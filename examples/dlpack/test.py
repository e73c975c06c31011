"""Exchanges tensors between swath, NumPy and PyTorch by DLPack: python3 test.py LIBRARY.

LIBRARY is what `cargo build --features dlpack --example dlpack` makes, such as target/debug/examples/libdlpack.so.
"""

import ctypes
import gc
import sys
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p, py_object

import numpy as np

try:
    import torch
except ImportError:
    torch = None

swath = ctypes.CDLL(sys.argv[1])
for name, result, arguments in [
    ("swath_arange", c_void_p, [c_size_t, c_size_t]),
    ("swath_counted", c_void_p, [c_size_t, c_size_t]),
    ("swath_alive", c_int64, []),
    ("swath_to_dlpack", c_void_p, [c_void_p]),
    ("swath_to_dlpack_0", c_void_p, [c_void_p]),
    ("swath_into_dlpack", c_void_p, [c_void_p]),
    ("swath_from_dlpack", c_void_p, [c_void_p]),
    ("swath_from_dlpack_0", c_void_p, [c_void_p]),
    ("swath_get", c_double, [c_void_p, c_size_t]),
    ("swath_address", c_size_t, [c_void_p]),
    ("swath_free", None, [c_void_p]),
]:
    function = getattr(swath, name)
    function.restype, function.argtypes = result, arguments

OLD, NEW = b"dltensor", b"dltensor_versioned"
Destructor = CFUNCTYPE(None, c_void_p)
python = ctypes.pythonapi
python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = py_object, [c_void_p, c_char_p, Destructor]
python.PyCapsule_SetName.argtypes = [py_object, c_char_p]
python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = c_char_p, [py_object]
python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = c_void_p, [py_object, c_char_p]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Old(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", CFUNCTYPE(None, c_void_p))]


class New(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", CFUNCTYPE(None, c_void_p)),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


def nothing(_):
    """The destructor of a capsule that the tests always consume."""


NOTHING = Destructor(nothing)


class Exported:
    """What NumPy's and PyTorch's from_dlpack take."""

    def __init__(self, managed, name):
        self.managed, self.name = managed, name

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return python.PyCapsule_New(self.managed, self.name, NOTHING)


def into_swath(array):
    """A tensor of swath that keeps an array of another library."""
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = array.__dlpack__()
    name = python.PyCapsule_GetName(capsule)
    managed = python.PyCapsule_GetPointer(capsule, name)
    python.PyCapsule_SetName(capsule, {OLD: b"used_dltensor", NEW: b"used_dltensor_versioned"}[name])
    taken = swath.swath_from_dlpack(managed) if name == NEW else swath.swath_from_dlpack_0(managed)
    assert taken, f"swath refused a {name}"
    return taken


def values(x, count):
    return [swath.swath_get(x, i) for i in range(count)]


def numpy_reads_and_may_not_write():
    x = swath.swath_counted(2, 3)
    address = swath.swath_address(x)
    array = np.from_dlpack(Exported(swath.swath_to_dlpack(x), NEW))
    swath.swath_free(x)
    assert array.tolist() == [[0, 3], [1, 4], [2, 5]] and array.ctypes.data == address, array
    assert not array.flags.writeable
    try:
        array[0, 0] = 1
        raise AssertionError("NumPy wrote to read-only memory")
    except ValueError:
        pass
    part = array[1:]
    del array
    gc.collect()
    assert swath.swath_alive() == 1
    assert part.tolist() == [[1, 4], [2, 5]]
    del part
    gc.collect()
    assert swath.swath_alive() == 0


def numpy_writes_what_is_handed_over():
    x = swath.swath_arange(100, 200)
    address = swath.swath_address(x)
    array = np.from_dlpack(Exported(swath.swath_into_dlpack(x), NEW))
    assert array.ctypes.data == address and array.flags.writeable
    array *= 2
    back = into_swath(array)
    assert swath.swath_address(back) == address
    assert values(back, 3) == [0, 2, 4] and swath.swath_get(back, 19999) == 39998
    swath.swath_free(back)


def arrays_of_numpy_come_in():
    base = np.arange(24.0).reshape(4, 6)
    for array in [base, base.T, base[::-1, ::2], base[1:3, 5:0:-2], base[:0], base[:1, :1], np.array(7, dtype="float32")]:
        x = into_swath(array)
        assert values(x, array.size) == array.ravel().tolist(), array
        swath.swath_free(x)
    for dtype in ["float16", "float32", "float64", "int32", "int64", "uint8", "uint32", "bool"]:
        array = np.array([0, 1, 1, 0], dtype=dtype)
        before = sys.getrefcount(array)
        x = into_swath(array)
        assert values(x, 4) == [0, 1, 1, 0] and sys.getrefcount(array) > before, dtype
        swath.swath_free(x)
        assert sys.getrefcount(array) == before, dtype
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    x = into_swath(frozen)
    assert values(x, 3) == [0, 1, 2]
    swath.swath_free(x)


def deleters_run_once():
    """A managed tensor of Python's own, whose deleter counts; swath accepts the first of each pair."""
    for kind, take in [(Old, swath.swath_from_dlpack_0), (New, swath.swath_from_dlpack)]:
        for lanes, is_accepted in [(1, True), (4, False)]:
            deleted = []
            data, shape = (ctypes.c_float * 3)(1, 2, 3), (c_int64 * 1)(3)
            tensor = DLTensor(ctypes.addressof(data), 1, 0, 1, 2, 32, lanes, shape, None, 0)
            deleter = CFUNCTYPE(None, c_void_p)(deleted.append)
            managed = kind(tensor=tensor, deleter=deleter)
            if kind is New:
                managed.major, managed.flags = 1, 1
            x = take(ctypes.addressof(managed))
            assert bool(x) == is_accepted
            if x:
                assert values(x, 3) == [1, 2, 3] and not deleted
                swath.swath_free(x)
            assert deleted == [ctypes.addressof(managed)], deleted


def pytorch_changes_a_tensor_and_hands_it_back():
    x = swath.swath_arange(100, 200)
    address = swath.swath_address(x)
    tensor = torch.from_dlpack(Exported(swath.swath_into_dlpack(x), NEW))
    assert tensor.data_ptr() == address and tensor.shape == (100, 200)
    tensor.mul_(3).add_(1)
    tensor[0, 1] = -5
    back = into_swath(tensor)
    del tensor
    gc.collect()
    assert swath.swath_address(back) == address
    assert values(back, 4) == [1, -5, 7, 10] and swath.swath_get(back, 19999) == 59998
    swath.swath_free(back)


def pytorch_frees_what_it_reads():
    x = swath.swath_counted(3, 2)
    tensor = torch.from_dlpack(Exported(swath.swath_to_dlpack(x), NEW))
    copy = torch.from_dlpack(Exported(swath.swath_to_dlpack_0(x), OLD))
    assert tensor.data_ptr() == swath.swath_address(x) != copy.data_ptr()
    swath.swath_free(x)
    assert tensor.tolist() == copy.tolist() == [[0, 2, 4], [1, 3, 5]]
    part = tensor[1]
    del tensor
    gc.collect()
    assert swath.swath_alive() == 1 and part.tolist() == [1, 3, 5]
    del part
    gc.collect()
    assert swath.swath_alive() == 0


def tensors_of_pytorch_come_in():
    base = torch.arange(24.0).reshape(2, 3, 4)
    for tensor in [base, base.permute(2, 0, 1), base[:, ::2, 1:], base[:0], torch.tensor(7.0), base[:1].expand(5, 3, 4)]:
        x = into_swath(tensor)
        assert values(x, tensor.numel()) == tensor.flatten().tolist(), tensor
        swath.swath_free(x)
    for dtype in [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool]:
        x = into_swath(torch.tensor([0, 1, 1, 0], dtype=dtype))
        assert values(x, 4) == [0, 1, 1, 0], dtype
        swath.swath_free(x)


tests = [numpy_reads_and_may_not_write, numpy_writes_what_is_handed_over, arrays_of_numpy_come_in, deleters_run_once]
if torch:
    tests += [pytorch_changes_a_tensor_and_hands_it_back, pytorch_frees_what_it_reads, tensors_of_pytorch_come_in]
for test in tests:
    test()
    print("ok", test.__name__)
print(f"{len(tests)} passed, NumPy {np.__version__}, PyTorch {torch.__version__ if torch else 'absent'}")
