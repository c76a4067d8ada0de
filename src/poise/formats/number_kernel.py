"""The compiled scanner of number rows: text to float64, recording the line of everything that is not plain.

A decimal of at most 2^53 as an integer, times or divided by a power of ten up to 10^22, is correctly rounded by one
floating-point operation (Clinger 1990, "How to read floating point numbers accurately"). One of up to 19 digits is
divided in twice the precision (Dekker 1971, "A floating-point technique for extending the available precision"), and
accepted if the result is certain. Every other token is left to the caller, in `hard`.
"""

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.bounds import LARGEST_NUMBER
from poise.compiled import compiled
from poise.types import Array

# The state of the scan as one array of integers, so that a call has few arguments.
COUNT, LINE, ON_LINE, FILL, ROW_LINE, BROKEN_LINE, FULL_LINES, LAST_BYTE, HARD = range(9)
STATE_SIZE = 9

_POWERS = 10.0 ** np.arange(23)
_EXACT = np.uint64(1 << 53)
_ROOM_FOR_A_DIGIT = np.uint64(10**18)  # below it, one more digit leaves at most 19 digits
_SPLIT = 134217729.0  # 2^27 + 1
_DOUBT = 2.0**-48  # more than the relative error of the correction
_NEWLINE, _RETURN, _MINUS, _PLUS, _POINT, _ZERO, _NINE = 10, 13, 45, 43, 46, 48, 57


@compiled
def scan(
    data: UInt8[Array, "bytes"],
    start: int,
    stop: int,
    columns: int,
    values: Float[Array, "capacity"],
    hard: Int[Array, "most 4"],
    state: Int[Array, "9"],
) -> int:
    """Read numbers of data[start:stop] into `values` until the end or until `hard` is full; return where it stopped."""
    position = start
    while position < stop and state[HARD] < len(hard):
        byte = data[position]
        if byte <= 32:
            _pass_white(byte, columns, state)
            position += 1
            continue
        end, value, plain = _number(data, position, stop)
        if not plain:
            while end < stop and data[end] > 32:
                end += 1
            hard[state[HARD], 0], hard[state[HARD], 1] = position, end
            hard[state[HARD], 2], hard[state[HARD], 3] = state[COUNT], state[LINE]
            state[HARD] += 1
        values[state[COUNT]] = value
        state[LAST_BYTE] = _ZERO
        _count_number(columns, state)
        position = end
    return position


@compiled
def _pass_white(byte: int, columns: int, state: Int[Array, "9"]) -> None:
    after_return = state[LAST_BYTE] == _RETURN
    state[LAST_BYTE] = byte
    if byte == _RETURN or (byte == _NEWLINE and not after_return):
        state[LINE] += 1
        if state[ON_LINE] == columns:
            state[FULL_LINES] += 1
        state[ON_LINE] = 0


@compiled
def _count_number(columns: int, state: Int[Array, "9"]) -> None:
    if state[FILL] == 0:
        if state[ON_LINE] > 0 and state[BROKEN_LINE] == 0:  # the previous row ended within a line
            state[BROKEN_LINE] = state[ROW_LINE]
        state[ROW_LINE] = state[LINE]
    state[COUNT] += 1
    state[ON_LINE] += 1
    state[FILL] += 1
    if state[FILL] == columns:
        state[FILL] = 0


@compiled
def _number(data: UInt8[Array, "bytes"], start: int, stop: int) -> tuple[int, float, bool]:
    """The end of the token, its value, and whether it is a plain number that this function rounds correctly."""
    position = start
    negative = data[position] == _MINUS
    if negative or data[position] == _PLUS:
        position += 1
    mantissa, digits, decimals = np.uint64(0), 0, 0
    past_point, fits = False, True
    while position < stop:
        byte = data[position]
        if _ZERO <= byte <= _NINE:
            if mantissa >= _ROOM_FOR_A_DIGIT:
                fits = False
            if fits:
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - _ZERO)
            digits += 1
            decimals += past_point
        elif byte == _POINT and not past_point:
            past_point = True
        else:
            break
        position += 1
    exponent, position, well_formed = _exponent(data, position, stop)
    exponent -= decimals
    ended = position == stop or data[position] <= 32
    plain = ended and well_formed and fits and digits > 0 and -22 <= exponent <= 22
    if plain and mantissa <= _EXACT:
        value = float(mantissa) * _POWERS[exponent] if exponent >= 0 else float(mantissa) / _POWERS[-exponent]
    elif plain and exponent < 0:
        value, plain = _long_division(mantissa, _POWERS[-exponent])
    else:
        value, plain = 0.0, False
    return position, -value if negative else value, plain and value <= LARGEST_NUMBER


@compiled
def _long_division(mantissa: np.uint64, power: float) -> tuple[float, bool]:
    """The mantissa over the power of ten, and whether it is certain to be correctly rounded."""
    high = float(mantissa)
    low = float(np.int64(mantissa - np.uint64(high)))
    quotient = high / power
    product, error = _exact_product(quotient, power)
    correction = (((high - product) - error) + low) / power
    value = quotient + correction
    certain = quotient + correction * (1 + _DOUBT) == value == quotient + correction * (1 - _DOUBT)
    return value, certain


@compiled
def _exact_product(a: float, b: float) -> tuple[float, float]:
    """The product as a sum of two numbers: the rounded value and the rounding error."""
    product = a * b
    a_high, b_high = _SPLIT * a - (_SPLIT * a - a), _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def _exponent(data: UInt8[Array, "bytes"], start: int, stop: int) -> tuple[int, int, bool]:
    """The exponent that starts here (0 if none), its end, and whether it is well formed."""
    if start == stop or (data[start] | 32) != 101:  # "e" or "E"
        return 0, start, True
    position = start + 1
    negative = position < stop and data[position] == _MINUS
    if position < stop and (negative or data[position] == _PLUS):
        position += 1
    exponent, digits = 0, 0
    while position < stop and _ZERO <= data[position] <= _NINE and digits < 4:
        exponent = exponent * 10 + (data[position] - _ZERO)
        digits += 1
        position += 1
    return -exponent if negative else exponent, position, digits > 0
