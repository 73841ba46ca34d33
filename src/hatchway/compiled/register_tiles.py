"""Products of small matrices in the processor's registers, for compiled functions that do more than multiply.

A matrix product of a library copies its arguments into an order that suits the processor, and writes its result to
memory. Where a result is turned into something else at once and multiplied again, most of that can be spared. These
three functions take arguments that lie in order already, and keep HEIGHT × LANES sums in registers: 24 of the 32 that
AVX-512 has, each of 16 float32.

Arrays are flat, and an ``_at`` says where in them to begin. An element is a float32; or an int32 that holds two bf16,
the first in its lower half: the products of both are added, in float32 (VDPBF16PS). ``count`` is in elements. In plain
Python these functions do nothing.
"""

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any, cast

REGISTER = 16
HEIGHT, LANES = 12, 2 * REGISTER
"""Two registers share each number that is read for one row: one alone would wait for the numbers."""

TILE = 288
"""Columns of a tile: whole HEIGHTs and LANES; rows of that length do not compete for the same places of a cache."""


def score(a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, bias: Any, bias_at: Any) -> None:
    """Set ``out[m, v] = bias[v] + Σ_k a[k, m] · b[k, v]``; rows are HEIGHT, LANES and, of ``out``, TILE elements."""


def add_rows(
    a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, deep: Any, scale: Any, scale_at: Any
) -> None:
    """Do ``out[m, v] += scale[m] · Σ_k a[m, k] · b[k, v]``; rows of ``a`` are a TILE, of ``b`` and ``out`` ``deep``."""


def add_columns(a: Any, a_at: Any, b: Any, b_at: Any, count: Any, out: Any, out_at: Any, deep: Any) -> None:
    """Do ``out[m, v] += Σ_k a[k, m] · b[k, v]``; rows of ``a`` are TILE elements, of ``b`` and ``out`` ``deep``."""


@functools.cache
def quicker(products: str) -> bool:
    """Whether these functions were seen to beat PyTorch's on a processor of this kind.

    float32: AMD's with AVX-512 (Zen 4). bf16: what multiplies bf16 in vectors but has no matrix unit (AMX); there
    PyTorch's float32 products are never rounded to bf16, whatever its switches say. Neither where numba was told to
    compile for another processor than this one, or to check every index.
    """
    binding, told = (cast("Any", importlib.import_module(name)) for name in ("llvmlite.binding", "numba.core.config"))
    if told.CPU_NAME or told.CPU_FEATURES is not None or not told.ENABLE_AVX or told.BOUNDSCHECK:
        return False
    has = binding.get_host_cpu_features().get
    if products == "bf16":
        return bool(has("avx512bf16")) and not has("amx-bf16")
    return bool(has("avx512f")) and binding.get_host_cpu_name().startswith("znver")


@functools.cache
def teach() -> None:
    """Tell numba what the three functions are."""
    extending, numba_types = (
        cast("Any", importlib.import_module(name)) for name in ("numba.extending", "numba.core.types")
    )

    def typed(function: Callable[..., None], _context: Any) -> Any:
        @functools.wraps(function)  # numba reads the names of arguments from what is wrapped
        def typer(*_: Any) -> Any:
            return numba_types.none

        return typer

    for function in (score, add_rows, add_columns):
        extending.type_callable(function)(functools.partial(typed, function))
        number = len(inspect.signature(function).parameters)
        extending.lower_builtin(function, *[numba_types.Any] * number)(functools.partial(_lowered, function))


def _lowered(function: Callable[..., None], context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write a function's instructions where it is called."""
    whole, ir = (cast("Any", importlib.import_module(name)) for name in ("numba.core.types", "llvmlite.ir"))
    number = ir.IntType(64)
    taken = [
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, whole.Array)
        else context.cast(builder, value, kind, whole.int64)
        for kind, value in zip(signature.args, arguments, strict=True)
    ]
    paired = isinstance(signature.args[0].dtype, whole.Integer)
    a, a_at, b, b_at, count, out, out_at = taken[:7]
    if function is score:
        steps, out_step = (1, HEIGHT, number(LANES)), number(TILE)
    elif function is add_rows:
        steps, out_step = (TILE // 2 if paired else TILE, 1, taken[7]), taken[7]
    else:
        steps, out_step = (1, TILE, taken[7]), taken[7]
    registers = ir.VectorType(ir.FloatType(), REGISTER)
    start = [ir.Constant(registers, [0.0] * REGISTER)] * (LANES // REGISTER)
    if function is score:
        places = (builder.gep(taken[7], [builder.add(taken[8], number(v))]) for v in range(0, LANES, REGISTER))
        start = [_loaded(builder, place, registers) for place in places]
    sums = _summed(builder, builder.gep(a, [a_at]), builder.gep(b, [b_at]), count, steps, start, paired)
    for m, v in itertools.product(range(HEIGHT), range(LANES // REGISTER)):
        made = sums[m, v]
        distance = builder.add(builder.mul(out_step, number(m)), number(v * REGISTER))
        place = builder.bitcast(builder.gep(out, [builder.add(out_at, distance)]), registers.as_pointer())
        if function is not score:
            before = _loaded(builder, place, registers)
            if function is add_rows:
                factor = builder.load(builder.gep(taken[8], [builder.add(taken[9], number(m))]))
                made = _multiply_add(builder, made, _everywhere(builder, factor), before)
            else:
                made = builder.fadd(made, before)
        builder.store(made, place).align = 4
    return context.get_dummy_value()


def _summed(
    builder: Any, a: Any, b: Any, count: Any, steps: tuple[int, int, Any], start: list[Any], paired: bool
) -> dict[tuple[int, int], Any]:
    """Write the loop over ``count``; return the registers after it, by row and place in the row.

    The steps are from row to row of ``out`` in ``a``, and from one k to the next in ``a`` and in ``b``; every row of
    registers begins with ``start``.
    """
    ir: Any = importlib.import_module("llvmlite.ir")
    number, registers = ir.IntType(64), start[0].type
    elements = ir.VectorType(ir.IntType(32) if paired else ir.FloatType(), REGISTER)
    a_down, a_step, b_step = steps
    places = list(itertools.product(range(HEIGHT), range(LANES // REGISTER)))
    before, body, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("summed")
    builder.cbranch(builder.icmp_signed(">", count, number(0)), body, after)

    builder.position_at_end(body)
    k = builder.phi(number)
    sums = {place: builder.phi(registers) for place in places}
    a_row, b_row = builder.gep(a, [builder.mul(k, number(a_step))]), builder.gep(b, [builder.mul(k, b_step)])
    many = [_loaded(builder, builder.gep(b_row, [number(v)]), elements) for v in range(0, LANES, REGISTER)]
    one = [_everywhere(builder, builder.load(builder.gep(a_row, [number(m * a_down)]))) for m in range(HEIGHT)]
    operation = _multiply_add_pairs if paired else _multiply_add
    made = {(m, v): operation(builder, one[m], many[v], sums[m, v]) for m, v in places}
    following = builder.add(k, number(1))
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    k.add_incoming(number(0), before)
    k.add_incoming(following, body)

    builder.position_at_end(after)
    results = {place: builder.phi(registers) for place in places}
    for place in places:
        for phi in (sums[place], results[place]):
            phi.add_incoming(start[place[1]], before)
            phi.add_incoming(made[place], body)
    return results


def _loaded(builder: Any, place: Any, kind: Any) -> Any:
    """Return the register that begins at a place of an array."""
    register = builder.load(builder.bitcast(place, kind.as_pointer()))
    register.align = 4
    return register


def _everywhere(builder: Any, value: Any) -> Any:
    """Return a register that holds a value in all places."""
    ir: Any = importlib.import_module("llvmlite.ir")
    nothing = ir.Constant(ir.VectorType(value.type, REGISTER), ir.Undefined)
    first = builder.insert_element(nothing, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), REGISTER), [0] * REGISTER))


def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x · y + z, rounded once."""
    return _called(builder, f"llvm.fma.v{REGISTER}f32", z.type, x, y, z)


def _multiply_add_pairs(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return z and the products of both bf16 of each element."""
    x, y = (builder.bitcast(pairs, _pairs_of_bf16()) for pairs in (x, y))
    return _called(builder, "llvm.x86.avx512bf16.dpbf16ps.512", z.type, z, x, y)


@functools.cache
def _pairs_of_bf16() -> Any:
    """Return LLVM's type of a register of bf16, for which llvmlite has no name; one, since types are compared."""
    ir: Any = importlib.import_module("llvmlite.ir")

    class BFloat(ir.Type):  # type: ignore[misc]
        """A float32 without its lower half."""

        def _to_string(self) -> str:
            return "bfloat"

    return ir.VectorType(BFloat(), 2 * REGISTER)


def _called(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call an instruction of LLVM's by its name."""
    ir, helpers = (cast("Any", importlib.import_module(module)) for module in ("llvmlite.ir", "numba.core.cgutils"))
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(helpers.get_or_insert_function(builder.module, kind, name), arguments)
