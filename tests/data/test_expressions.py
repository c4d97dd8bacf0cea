import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.data.expressions import Expression
from harmonrank.support import UsageError

A, B = np.array([0.2, 0.5, 0.9]), np.array([0.4, 0.1, 0.3])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("-a + +b", B - A),
        ("a * (1 + 3*b)**0.5", A * np.sqrt(1 + 3 * B)),
        ("a / b - 2e-1", A / B - 0.2),
        ("2 ** a ** 2", 2 ** (A**2)),  # powers bind to the right, as in Python
        ("log(a) + exp(b) * sqrt(a)", np.log(A) + np.exp(B) * np.sqrt(A)),
        ("min(a, b, 0.25) + max(a, b)", np.minimum(np.minimum(A, B), 0.25) + np.maximum(A, B)),
        ("abs(a - b)", np.abs(A - B)),
        ("1 / 3", np.full(3, 1 / 3)),
    ],
)
def test_a_formula_is_arithmetic(text, expected):
    np.testing.assert_array_equal(Expression.parse(text).values({"a": A, "b": B}), expected)


def test_columns_are_named_once_in_their_order():
    assert Expression.parse("b * a + b ** exp(c)").names == ("b", "a", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be text such as"),
        (None, "must be text such as .* Got None"),
        ("a +", "cannot be read"),
        ("a b", "cannot be read"),
        ("a; b", "cannot be read"),
        ("a = 1", "cannot be read"),
        ("a\0", "cannot be read"),
        ("__import__('os').system('true')", "which it may not"),
        ("open('x')", "calls 'open', which it may not"),
        ("a.real", "'a.real', which it may not"),
        ("a[0]", "which it may not"),
        ("[x for x in a]", "which it may not"),
        ("lambda: a", "which it may not"),
        ("(b := a)", "which it may not"),
        ("a if b else 1", "which it may not"),
        ("a > b", "which it may not"),
        ("a and b", "which it may not"),
        ("a // b", "which it may not"),
        ("a << 9", "which it may not"),
        ("~a", "which it may not"),
        ("max(*a)", "takes 2 to 20 arguments|which it may not"),
        ("log(a, base=2)", "which it may not"),
        ("log(a)(b)", "which it may not"),
        ("log()", "takes 1 arguments. Got 0"),
        ("min(a)", "takes 2 to 20 arguments. Got 1"),
        ("'a' * 3", "where a finite number was expected"),
        ("a * True", "where a finite number was expected"),
        ("a * 1j", "where a finite number was expected"),
        ("a * 1e999", "where a finite number was expected"),
        ("a * 1" + "0" * 400, "where a finite number was expected"),
        ("a + " * 600 + "a", "may have 2,000 characters"),
        ("-" * 900 + "a", "nested deeper than 60|nested too deep"),
        ("(" * 300 + "a" + ")" * 300, "cannot be read"),
    ],
)
def test_anything_else_is_refused_by_its_name(text, message):
    with pytest.raises(UsageError, match=message):
        Expression.parse(text)


def test_a_power_of_powers_overflows_at_once():
    assert np.isinf(Expression.parse("9**9**9**9 * a").values({"a": A})).all()


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab0123456789.+-*/() ,logexpminax_[]'\"=:;@\\\n", max_size=40))
def test_any_text_is_a_formula_or_refused_in_one_sentence(text):
    try:
        formula = Expression.parse(text)
    except UsageError:
        with pytest.raises(UsageError, match=r"\A[^\n]+\Z"):
            Expression.parse(text)
    else:
        assert formula.values(dict.fromkeys(formula.names, A)).dtype == np.float64
