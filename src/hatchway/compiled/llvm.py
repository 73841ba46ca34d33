"""What is needed to write a function of compiled code as instructions of LLVM's.

LLVM's names are numba's business and come with it, so they are imported when a function is compiled.
"""

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

REGISTER = 16
"""Numbers of 32 bits in the widest register that a processor has; others take several for one."""

Lowered = Callable[..., None]
"""Writes a function's instructions: takes LLVM's builder and what :func:`teach` makes of each argument."""


def ir() -> Any:
    """Return the module that has LLVM's types."""
    return importlib.import_module("llvmlite.ir")


def processor() -> tuple[str, Mapping[str, bool]]:
    """Return the name of this processor and its features; none where numba was told to compile for another one.

    Nor where it was told to check every index: what is written here would not be checked.
    """
    binding: Any = importlib.import_module("llvmlite.binding")
    told: Any = importlib.import_module("numba.core.config")
    if told.CPU_NAME or told.CPU_FEATURES is not None or not told.ENABLE_AVX or told.BOUNDSCHECK:
        return "", {}
    return binding.get_host_cpu_name(), binding.get_host_cpu_features()


def teach(function: Callable[..., None], lowered: Lowered) -> None:
    """Tell numba that compiled functions may call this one, and what it then writes there.

    Arrays arrive as pointers to their first number, whole numbers as int64.
    """
    extending: Any = importlib.import_module("numba.extending")
    types: Any = importlib.import_module("numba.core.types")

    def typed(_context: Any) -> Any:
        @functools.wraps(function)  # numba reads the names of arguments from what is wrapped
        def typer(*_: Any) -> Any:
            return types.none

        return typer

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        taken = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else context.cast(builder, value, kind, types.int64)
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        lowered(builder, *taken)
        return context.get_dummy_value()

    extending.type_callable(function)(typed)
    number = len(inspect.signature(function).parameters)
    extending.lower_builtin(function, *[types.Any] * number)(written)


def apart(name: str, lowered: Lowered) -> Lowered:
    """Return what calls the instructions as a function of their own, one in a module, instead of writing them there.

    A compiler that writes them into a large function keeps too much at hand for them, and fetches it from memory.
    """

    def calling(builder: Any, *arguments: Any) -> None:
        function = builder.module.globals.get(name)
        if function is None:
            kind = ir().FunctionType(ir().VoidType(), [argument.type for argument in arguments])
            function = ir().Function(builder.module, kind, name)
            function.linkage = "internal"
            function.attributes.add("noinline")
            inside = ir().IRBuilder(function.append_basic_block("begin"))
            lowered(inside, *function.args)
            inside.ret_void()
        builder.call(function, arguments)

    return calling


def called(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call an instruction of LLVM's by its name."""
    helpers: Any = importlib.import_module("numba.core.cgutils")
    kind = ir().FunctionType(result, [argument.type for argument in arguments])
    return builder.call(helpers.get_or_insert_function(builder.module, kind, name), arguments)


def element(builder: Any, array: Any, *distances: Any) -> Any:
    """Return the place in an array that is so many elements from its beginning, int64 or of Python."""
    whole = [ir().IntType(64)(distance) if isinstance(distance, int) else distance for distance in distances]
    return builder.gep(array, [functools.reduce(builder.add, whole)])


def times(builder: Any, value: Any, factor: int) -> Any:
    """Return an int64 times a number."""
    return builder.mul(value, value.type(factor))


def loaded(builder: Any, place: Any, kind: Any) -> Any:
    """Return the register that begins at a place of an array."""
    register = builder.load(builder.bitcast(place, kind.as_pointer()))
    register.align = 4
    return register


def stored(builder: Any, register: Any, place: Any) -> None:
    """Write a register to a place of an array."""
    builder.store(register, builder.bitcast(place, register.type.as_pointer())).align = 4


def everywhere(builder: Any, value: Any, lanes: int) -> Any:
    """Return a register that holds a value in all its lanes."""
    nothing = ir().Constant(ir().VectorType(value.type, lanes), ir().Undefined)
    first = builder.insert_element(nothing, value, ir().IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir().Constant(ir().VectorType(ir().IntType(32), lanes), [0] * lanes))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x · y + z of registers of float32, rounded once."""
    return called(builder, f"llvm.fma.v{z.type.count}f32", z.type, x, y, z)


@functools.cache
def bfloat() -> Any:
    """Return LLVM's type of a bf16, for which llvmlite has no name; one, since types are compared."""

    class BFloat(ir().Type):  # type: ignore[misc]
        """A float32 without its lower half."""

        def _to_string(self) -> str:
            return "bfloat"

    return BFloat()


def loop(
    builder: Any, count: Any, step: int, start: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Write a loop over ``range(0, count, step)``; return what became of the registers that it began with.

    Args:
        builder: LLVM's.
        count: int64.
        step: from one turn to the next.
        start: registers before the first turn.
        body: writes a turn; takes the number of the turn and the registers, and returns these after it.
    """
    number = ir().IntType(64)
    before, turn, after = builder.block, builder.append_basic_block("turn"), builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", count, number(0)), turn, after)

    builder.position_at_end(turn)
    place = builder.phi(number)
    carried = [builder.phi(register.type) for register in start]
    made = body(place, carried)
    following, end = builder.add(place, number(step)), builder.block
    builder.cbranch(builder.icmp_signed("<", following, count), turn, after)
    for phi, first, later in zip([place, *carried], [number(0), *start], [following, *made], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, end)

    builder.position_at_end(after)
    results = [builder.phi(register.type) for register in start]
    for phi, first, later in zip(results, start, made, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, end)
    return results
