"""Documented answers that have a type of their own: arrays of JSON, sums, joined bytes, structs, places in arrays."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

JSON_ARRAYS: tuple[tuple[str, Any], ...] = (
    ('JSON_QUERY_ARRAY(\'[1, "a", {"b": 2}]\')', ["1", '"a"', '{"b":2}']),
    ("JSON_EXTRACT_ARRAY('{\"a\": [\"x\", null]}', '$.a')", ['"x"', "null"]),
    ("ARRAY_LENGTH(JSON_QUERY_ARRAY('{\"a\": 1}', '$.a'))", None),
    ("JSON_QUERY_ARRAY('{\"a\": 1}', '$.b') IS NULL", True),
    ("JSON_QUERY_ARRAY('[]')", []),
    ("JSON_VALUE_ARRAY('[\"a\", 1, true]')", ["a", "1", "true"]),
    ('JSON_VALUE_ARRAY(\'["a", {"b": 1}]\') IS NULL', True),
    ("JSON_EXTRACT_STRING_ARRAY('{\"a\": [1, \"b\"]}', '$.a')", ["1", "b"]),
    ("TO_JSON_STRING(JSON_QUERY_ARRAY(JSON '[\"a\", 1]')[OFFSET(0)])", '"a"'),
    ("(SELECT STRING_AGG(e, '|') FROM UNNEST(JSON_QUERY_ARRAY('[\"x\",1]')) e)", '"x"|1'),
    ("(SELECT TO_JSON_STRING(t) FROM (SELECT * FROM UNNEST([STRUCT(7 AS n)]) WITH OFFSET AS o) t)", '{"n":7,"o":0}'),
    ("(SELECT TO_JSON_STRING(s) FROM UNNEST([STRUCT(7 AS n)]) AS s WITH OFFSET AS o)", '{"n":7}'),
)
ENCODINGS: tuple[tuple[str, Any], ...] = (
    ("TO_JSON_STRING(9007199254740992)", "9007199254740992"),
    ("TO_JSON_STRING(9007199254740993)", '"9007199254740993"'),
    ("TO_JSON_STRING([-9007199254740993])", '["-9007199254740993"]'),
    ("TO_JSON_STRING(NUMERIC '123.56')", '"123.56"'),
    ("TO_JSON_STRING(NUMERIC '-1')", "-1"),
    ("TO_JSON_STRING([NUMERIC '0', 1.5])", "[0,1.5]"),
    ("TO_JSON_STRING([NUMERIC '0', NUMERIC '1.5'])", '[0,"1.5"]'),
    ("TO_JSON_STRING(STRUCT(1/3 AS f, 1e300 AS g, 1e15 AS h))", '{"f":0.33333333333333331,"g":1e+300,"h":1e+15}'),
    ("TO_JSON_STRING([CAST('inf' AS FLOAT64), CAST('-inf' AS FLOAT64)])", '["Infinity","-Infinity"]'),
    ("TO_JSON_STRING(STRUCT(b'Google' AS b))", '{"b":"R29vZ2xl"}'),
    ("TO_JSON_STRING([b'\\x00\\xff'])", '["AP8="]'),
    (
        "TO_JSON_STRING([TIMESTAMP '2017-03-06 12:34:56.789012+00', TIMESTAMP '2017-03-06 12:34:56+00'])",
        '["2017-03-06T12:34:56.789012Z","2017-03-06T12:34:56Z"]',
    ),
    ("TO_JSON_STRING(STRUCT(DATETIME '2017-03-06 12:34:56.7' AS d))", '{"d":"2017-03-06T12:34:56.700"}'),
    ("TO_JSON_STRING(TIME '12:34:56.789012')", '"12:34:56.789012"'),
    ("TO_JSON_STRING(STRUCT(1, 'a'))", '{"":1,"":"a"}'),
    ("JSON_VALUE(TO_JSON(TIMESTAMP '2017-03-06 12:34:56+00'))", "2017-03-06T12:34:56Z"),
    ("JSON_VALUE(TO_JSON(STRUCT(b'Google' AS b)), '$.b')", "R29vZ2xl"),
    ("JSON_VALUE(JSON_OBJECT('d', DATETIME '2017-03-06 12:34:56'), '$.d')", "2017-03-06T12:34:56"),
    ("JSON_VALUE(JSON_ARRAY(b'Google', 1), '$[0]')", "R29vZ2xl"),
    ("JSON_VALUE(JSON_SET(JSON '{}', '$.t', TIMESTAMP '2017-03-06 12:34:56+00'), '$.t')", "2017-03-06T12:34:56Z"),
    ("CAST('é' AS BYTES) = b'\\xc3\\xa9'", True),
    ("LENGTH(CAST('\\\\x41' AS BYTES))", 4),
)
SUMS: tuple[tuple[str, Any], ...] = (
    ("(SELECT AVG(x) FROM UNNEST([NUMERIC '1', NUMERIC '1', NUMERIC '2']) x)", Decimal("1.333333333")),
    (
        (
            "(SELECT AVG(x) FROM UNNEST([NUMERIC '12345678901234567890.123456789', NUMERIC"
            " '12345678901234567890.123456787']) x)"
        ),
        Decimal("12345678901234567890.123456788"),
    ),
    ("(SELECT AVG(x) FROM UNNEST([BIGNUMERIC '1', BIGNUMERIC '2']) x)", Decimal("1.5")),
    ("(SELECT AVG(x) FROM UNNEST([CAST(NULL AS NUMERIC)]) x)", None),
    (
        "ARRAY(SELECT AVG(x) OVER (ORDER BY x) FROM UNNEST([NUMERIC '1', NUMERIC '2']) x ORDER BY x)",
        [Decimal(1), Decimal("1.5")],
    ),
    ("ARRAY(SELECT SUM(x) OVER () FROM UNNEST([1]) x)", [1]),
    ("[(SELECT SUM(x) FROM UNNEST([1, 2]) x)]", [3]),
    ("(SELECT AS STRUCT SUM(x) AS s FROM UNNEST([1, 2]) x).s", 3),
    ("(SELECT SUM(x) / 2 FROM UNNEST([1, 2]) x)", 1.5),
    ("(SELECT SUM(CAST(x AS NUMERIC)) FROM UNNEST([9223372036854775807, 1]) x)", Decimal(9223372036854775808)),
)
JOINED: tuple[tuple[str, Any], ...] = (
    ("CONCAT(b'a', b'b', b'c')", b"abc"),
    ("b'a' || b'b' || b'c'", b"abc"),
    ("CONCAT('a', 1.0, TRUE, DATE '2020-01-02')", "a1true2020-01-02"),
    ("[1] || [2, 3]", [1, 2, 3]),
    ("CONCAT(b'a', NULL)", None),
    ("'a' || NULL", None),
)
PLACES: tuple[tuple[str, Any], ...] = (
    ("ARRAY(SELECT place FROM (SELECT place FROM UNNEST(['a', 'b']) WITH OFFSET AS place) ORDER BY place)", [0, 1]),
    (
        (
            "(SELECT TO_JSON_STRING(ARRAY_AGG(t ORDER BY o)) FROM (SELECT * FROM UNNEST(['a', 'b']) AS x"
            " WITH OFFSET AS o) t)"
        ),
        '[{"x":"a","o":0},{"x":"b","o":1}]',
    ),
    ("(SELECT s.n + o FROM UNNEST([STRUCT(7 AS n)]) AS s WITH OFFSET AS o)", 7),
    ("(SELECT n + o FROM UNNEST([STRUCT(7 AS n)]) AS s WITH OFFSET AS o)", 7),
    ("(SELECT COUNT(*) FROM (SELECT ARRAY<INT64>[] AS a) t LEFT JOIN UNNEST(t.a) x WITH OFFSET o)", 1),
    (("(SELECT t.o + (SELECT MAX(o) FROM UNNEST(t.a) WITH OFFSET AS o) FROM (SELECT 10 AS o, [1, 2] AS a) t)"), 11),
    (
        (
            "ARRAY(SELECT CONCAT(a, b) FROM UNNEST(['x', 'y']) a WITH OFFSET o JOIN UNNEST(['1', '2']) b"
            " WITH OFFSET p ON o = p ORDER BY o)"
        ),
        ["x1", "y2"],
    ),
)
STRUCTS: tuple[tuple[str, Any], ...] = (
    ("STRUCT(1 AS a) = STRUCT(1 AS b)", True),
    ("STRUCT(1 AS a, STRUCT('x' AS n) AS s) = STRUCT(1 AS b, STRUCT('x' AS m) AS t)", True),
    ("STRUCT(1 AS a) != STRUCT(1 AS b)", False),
    ("STRUCT(1 AS a) IN (STRUCT(2 AS b), STRUCT(1 AS c))", True),
    ("STRUCT(1, NULL) = STRUCT(1, 2)", None),
    ("STRUCT(1, NULL) = STRUCT(2, 2)", False),
    ("ARRAY(SELECT s.a FROM UNNEST([STRUCT(1 AS a), STRUCT(2 AS b)]) s ORDER BY 1)", [1, 2]),
    ("ARRAY(SELECT s.a FROM (SELECT STRUCT(1 AS a) AS s UNION ALL SELECT STRUCT(2 AS b)) ORDER BY 1)", [1, 2]),
    ("IF(FALSE, STRUCT(1 AS a), STRUCT(2 AS b)).a", 2),
    ("COALESCE(NULL, STRUCT(2 AS b)).b", 2),
)
