"""Further documented answers of arrays, JSON, aggregates, windows and clauses, and of what stands alone."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

ARRAYS: tuple[tuple[str, Any], ...] = (
    ("ARRAY_CONCAT([1], CAST(NULL AS ARRAY<INT64>)) IS NULL", True),
    ("GENERATE_ARRAY(1, 10, 4)", [1, 5, 9]),
    ("GENERATE_ARRAY(5, 1, -2)", [5, 3, 1]),
    ("GENERATE_ARRAY(0.0, 1.0, 0.5)", [0.0, 0.5, 1.0]),
    ("GENERATE_ARRAY(1, 2.3, 0.5)", [1.0, 1.5, 2.0]),
    ("GENERATE_ARRAY(1, 0, -0.5)", [1.0, 0.5, 0.0]),
    ("GENERATE_ARRAY(1.5, 1)", []),
    ("ARRAY_LENGTH(GENERATE_ARRAY(0, 1, 0.1))", 11),
    ("TIME(TIMESTAMP '2008-12-25 15:30:00.25+00')", time(15, 30, 0, 250000)),
    ("CAST(TIMESTAMP '2008-12-25 15:30:00+08' AS TIME)", time(7, 30)),
    ("CAST(DATETIME '2008-12-25 15:30:00' AS TIME)", time(15, 30)),
    ("EXTRACT(TIME FROM TIMESTAMP '2008-12-25 15:30:00+00')", time(15, 30)),
    ("DATETIME(DATE '2008-12-25', TIME(TIMESTAMP '2020-01-01 15:30:00+00'))", datetime(2008, 12, 25, 15, 30)),
    ("ARRAY_LENGTH([NULL, 1])", 2),
    ("[1, NULL, 3][OFFSET(1)]", None),
    ("(SELECT ARRAY_AGG(x) FROM UNNEST(ARRAY<INT64>[]) x) IS NULL", True),
    ("ARRAY(SELECT x FROM UNNEST([1, 2]) x WHERE x > 5)", []),
    ("ARRAY_TO_STRING(CAST(NULL AS ARRAY<STRING>), ',')", None),
    ("ARRAY_REVERSE(['a', 'b'])", ["b", "a"]),
    ("[1, 2][SAFE_ORDINAL(0)]", None),
    ("[1, 2][SAFE_OFFSET(-1)]", None),
    ("(SELECT COUNT(*) FROM UNNEST(CAST(NULL AS ARRAY<INT64>)))", 0),
    ("ARRAY(SELECT AS STRUCT 1 AS a, 2 AS b)[OFFSET(0)].b", 2),
    ("ARRAY_SLICE([1, 2, 3], -2, -1)", [2, 3]),
    ("ARRAY_SLICE([1, 2, 3], 2, 1)", []),
    ("STRUCT(1 AS a, 2 AS b) = STRUCT(1, 2)", True),
    ("EXISTS(SELECT * FROM UNNEST([NULL]))", True),
    ("2 IN UNNEST([1, 2, NULL])", True),
    ("3 NOT IN UNNEST([1, NULL])", None),
)
JSON: tuple[tuple[str, Any], ...] = (
    ("JSON_VALUE(JSON '{\"a\": [10, {\"b\": 20}]}', '$.a[1].b')", "20"),
    ("JSON_VALUE('{\"a\": 1}', '$.a.b')", None),
    ("JSON_QUERY('{\"a\": [1, 2]}', '$.a[0]')", "1"),
    ("JSON_QUERY('{\"a\": null}', '$.a')", None),
    ("TO_JSON_STRING(JSON_QUERY(JSON '{\"a\": null}', '$.a'))", "null"),
    ("JSON_EXTRACT_SCALAR('{\"a b\": 1}', \"$['a b']\")", "1"),
    ("LAX_INT64(JSON '\"x\"')", None),
    ("LAX_BOOL(JSON '0')", False),
    ("LAX_BOOL(JSON '2')", True),
    ("LAX_FLOAT64(JSON 'true')", None),
    ("LAX_INT64(JSON 'true')", 1),
    ("LAX_STRING(JSON 'true')", "true"),
    ("LAX_STRING(JSON '[1]')", None),
    ("LAX_BOOL(JSON '\"x\"')", None),
    ("LAX_INT64(JSON '\"1e2\"')", 100),
    ("FLOAT64(JSON '9.8')", 9.8),
    ("INT64(JSON '10.0')", 10),
    ("SAFE.INT64(JSON '10.1')", None),
    ("SAFE.BOOL(JSON '1')", None),
    ("SAFE.STRING(JSON '1')", None),
    ("SAFE.FLOAT64(JSON '\"1\"')", None),
    ("TO_JSON_STRING(JSON_ARRAY())", "[]"),
    ("TO_JSON_STRING(JSON_OBJECT())", "{}"),
    ("TO_JSON_STRING(JSON_ARRAY([1, 2], STRUCT(1 AS a)))", '[[1,2],{"a":1}]'),
    ("TO_JSON_STRING(JSON_OBJECT(['a', 'b'], [1, 2]))", '{"a":1,"b":2}'),
    ("TO_JSON_STRING(JSON_SET(JSON '{\"a\": 1}', '$.b', 2))", '{"a":1,"b":2}'),
    ("TO_JSON_STRING(JSON_STRIP_NULLS(JSON '[1, null]'))", "[1]"),
    ("JSON_VALUE(TO_JSON(STRUCT(1 AS a)), '$.a')", "1"),
    ("JSON_TYPE(JSON '1.5')", "number"),
    ("JSON_TYPE(TO_JSON(DATE '2020-01-01'))", "string"),
    ("TO_JSON_STRING([STRUCT(1 AS a)])", '[{"a":1}]'),
    ("TO_JSON_STRING('\\n\\t')", '"\\n\\t"'),
    ("TO_JSON_STRING(1e20)", "1e+20"),
    ("SAFE.JSON_VALUE('{', '$.a')", None),
    ("TO_JSON_STRING(PARSE_JSON('1.50'))", "1.5"),
    ("JSON '{\"a\": 1}' IS NULL", False),
)
AGGREGATES: tuple[tuple[str, Any], ...] = (
    ("(SELECT APPROX_QUANTILES(x, 2) FROM UNNEST([1, 1, 1, 4, 5, 6, 7, 8, 9, 10]) x)", [1, 5, 10]),
    ("(SELECT APPROX_QUANTILES(DISTINCT x, 2) FROM UNNEST([1, 1, 1, 4, 5, 6, 7, 8, 9, 10]) x)", [1, 6, 10]),
    ("(SELECT APPROX_QUANTILES(x, 4) FROM UNNEST([1, 2, 3, 4, 5]) x)", [1, 2, 3, 4, 5]),
    ("(SELECT APPROX_QUANTILES(x, 1) FROM UNNEST(['b', 'a']) x)", ["a", "b"]),
    ("(SELECT ARRAY_LENGTH(APPROX_TOP_COUNT(x, 5)) FROM UNNEST(['a', 'a', 'b']) x)", 2),
    ("(SELECT HLL_COUNT.EXTRACT(HLL_COUNT.INIT(x)) FROM UNNEST([1, 1, 2]) x)", 2),
    ("(SELECT LOGICAL_OR(x) FROM UNNEST(ARRAY<BOOL>[]) x)", None),
    ("(SELECT BIT_AND(x) FROM UNNEST([0xF001, 0x00A1]) x)", 1),
    ("(SELECT BIT_OR(x) FROM UNNEST([0xF001, 0x00A1]) x)", 61601),
    ("(SELECT BIT_XOR(x) FROM UNNEST([5678, 1234]) x)", 4860),
    ("(SELECT BIT_XOR(DISTINCT x) FROM UNNEST([1234, 5678, 1234]) x)", 4860),
    ("(SELECT STDDEV(x) FROM UNNEST([1]) x)", None),
    ("(SELECT VAR_POP(x) FROM UNNEST([5]) x)", 0.0),
    ("(SELECT AVG(x) FROM UNNEST([1, CAST('inf' AS FLOAT64)]) x)", math.inf),
    ("(SELECT CORR(x, 1.0) FROM UNNEST([1.0, 2.0]) x)", math.nan),
    ("(SELECT CORR(x, x) FROM UNNEST([1.0]) x)", None),
    ("(SELECT COVAR_SAMP(x, x) FROM UNNEST([1.0]) x)", None),
    ("(SELECT STRING_AGG(x, '' ORDER BY x) FROM UNNEST(['b', 'a']) x)", "ab"),
    ("(SELECT STRING_AGG(x) FROM UNNEST(ARRAY<STRING>[]) x)", None),
    ("(SELECT MAX(x) FROM UNNEST([b'a', b'b']) x)", b"b"),
    ("(SELECT MIN(x) FROM UNNEST([DATE '2020-01-02', DATE '2020-01-01']) x)", date(2020, 1, 1)),
    ("(SELECT MAX(x) FROM UNNEST([TRUE, FALSE]) x)", True),
    (
        ("(SELECT MAX_BY(fruit, cost) FROM UNNEST([STRUCT('apple' AS fruit, 3.55 AS cost), STRUCT('banana', 2.10)]))"),
        "apple",
    ),
    ("(SELECT COUNT(DISTINCT IF(x > 1, x, NULL)) FROM UNNEST([1, 2, 3, 3]) x)", 2),
    ("(SELECT COUNT(*) FROM (SELECT 1 LIMIT 0))", 0),
    ("(SELECT SUM(x) FROM UNNEST([1.5, NULL]) x)", 1.5),
    ("(SELECT SUM(x) FROM UNNEST([NUMERIC '1.5', NULL]) x)", Decimal("1.5")),
    ("(SELECT STDDEV_POP(x) FROM UNNEST([NUMERIC '1', NUMERIC '3']) x)", 1.0),
    ("(SELECT ANY_VALUE(x) FROM UNNEST(ARRAY<INT64>[]) x)", None),
    ("(SELECT ARRAY_AGG(x ORDER BY x)[OFFSET(0)] FROM UNNEST([3, 1]) x)", 1),
    ("(SELECT COUNTIF(x) FROM UNNEST(ARRAY<BOOL>[]) x)", 0),
    ("(SELECT MAX(x) FROM UNNEST([1, 2]) x HAVING COUNT(*) > 5)", None),
    ("(SELECT GROUPING(k) FROM (SELECT 1 AS k) GROUP BY k)", 0),
    ("(SELECT APPROX_COUNT_DISTINCT(x) FROM UNNEST([1, NULL, 1]) x)", 1),
)
WINDOWS: tuple[tuple[str, Any], ...] = (
    (
        (
            "ARRAY(SELECT SUM(x) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM"
            " UNNEST([1, 2, 2, 3]) x ORDER BY x)"
        ),
        [1, 5, 5, 8],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY x RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM"
            " UNNEST([1, 2, 2, 4]) x ORDER BY x)"
        ),
        [3, 2, 2, 1],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY x DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM"
            " UNNEST([1, 2, 4]) x ORDER BY x)"
        ),
        [2, 1, 1],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY x RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) FROM"
            " UNNEST([1, 2, 4, 8]) x ORDER BY x)"
        ),
        [0, 1, 2, 0],
    ),
    (
        (
            "ARRAY(SELECT SUM(x) OVER (ORDER BY x RANGE BETWEEN 0.5 PRECEDING AND 0.5 FOLLOWING) FROM"
            " UNNEST([1.0, 1.4, 3.0]) x ORDER BY x)"
        ),
        [2.4, 2.4, 3.0],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY UNIX_DATE(d) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"
            " FROM UNNEST([DATE '2020-01-01', DATE '2020-01-02', DATE '2020-01-05']) d ORDER BY d)"
        ),
        [1, 2, 1],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM"
            " UNNEST([1, 2, 4]) x ORDER BY x)"
        ),
        [2, 2, 3],
    ),
    ("ARRAY(SELECT NTILE(3) OVER (ORDER BY x) FROM UNNEST([1, 2, 3, 4]) x ORDER BY x)", [1, 1, 2, 3]),
    ("ARRAY(SELECT LEAD(x, 2, 0) OVER (ORDER BY x) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [3, 0, 0]),
    (
        (
            "ARRAY(SELECT NTH_VALUE(x, 2) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
            " FOLLOWING) FROM UNNEST([1, 2, 3]) x ORDER BY x)"
        ),
        [2, 2, 2],
    ),
    (
        (
            "ARRAY(SELECT FIRST_VALUE(x IGNORE NULLS) OVER (ORDER BY o ROWS BETWEEN CURRENT ROW AND"
            " UNBOUNDED FOLLOWING) FROM UNNEST([NULL, 2, 3]) x WITH OFFSET o ORDER BY o)"
        ),
        [2, 2, 3],
    ),
    ("ARRAY(SELECT STRING_AGG(x) OVER (ORDER BY x) FROM UNNEST(['a', 'b']) x ORDER BY x)", ["a", "a,b"]),
    ("ARRAY(SELECT COUNT(DISTINCT x) OVER () FROM UNNEST([1, 1, 2]) x)", [2, 2, 2]),
    ("ARRAY(SELECT x FROM UNNEST([1, 2, 3, 4]) x WHERE TRUE QUALIFY x > AVG(x) OVER () ORDER BY x)", [3, 4]),
    (
        (
            "ARRAY(SELECT x FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL SELECT 'b', 2)"
            " WHERE TRUE QUALIFY RANK() OVER (PARTITION BY k ORDER BY x) = 1 ORDER BY x)"
        ),
        [1, 2],
    ),
    (
        (
            "ARRAY(SELECT k FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL SELECT 'b', 2)"
            " GROUP BY k QUALIFY RANK() OVER (ORDER BY SUM(x) DESC) = 1)"
        ),
        ["a"],
    ),
    (("ARRAY(SELECT r FROM (SELECT x, ROW_NUMBER() OVER (ORDER BY x) AS r FROM UNNEST([5, 4]) x QUALIFY r = 2))"), [2]),
    (
        (
            "ARRAY(SELECT SUM(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM"
            " UNNEST([1, 2, 3]) x ORDER BY x)"
        ),
        [6, 5, 3],
    ),
    (
        (
            "ARRAY(SELECT MAX(x) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM UNNEST([1,"
            " 2, 3]) x WHERE x < 3 ORDER BY x)[OFFSET(0)]"
        ),
        2,
    ),
    ("ARRAY(SELECT PERCENT_RANK() OVER (ORDER BY x) FROM UNNEST([1]) x)", [0.0]),
    ("ARRAY(SELECT CUME_DIST() OVER (ORDER BY x DESC) FROM UNNEST([1, 2]) x ORDER BY x)", [1.0, 0.5]),
    ("ARRAY(SELECT LOGICAL_OR(x > 2) OVER (ORDER BY x) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [False, False, True]),
    ("ARRAY(SELECT ARRAY_LENGTH(ARRAY_AGG(x) OVER (ORDER BY x)) FROM UNNEST([1, 2]) x ORDER BY x)", [1, 2]),
    ("ARRAY(SELECT DENSE_RANK() OVER (ORDER BY x DESC) FROM UNNEST([1, 2, 2]) x ORDER BY x)", [2, 1, 1]),
    ("ARRAY(SELECT ROW_NUMBER() OVER () FROM UNNEST([7]) x)", [1]),
)
CLAUSES: tuple[tuple[str, Any], ...] = (
    (
        (
            "(SELECT TO_JSON_STRING(t) FROM (SELECT * FROM (SELECT 'q1' AS k, 1 AS x, 'z' AS g)"
            " PIVOT(COUNT(*) FOR k IN ('q1', 'q2'))) t)"
        ),
        '{"x":1,"g":"z","q1":1,"q2":0}',
    ),
    (
        (
            "(SELECT COUNT(*) FROM (SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS d) UNPIVOT((x, y) FOR n IN ((a, b)"
            " AS 'p', (c, d) AS 'q')))"
        ),
        2,
    ),
    ("ARRAY(SELECT n FROM (SELECT 1 AS a, 2 AS b) UNPIVOT(v FOR n IN (a AS 'x', b AS 'y')) ORDER BY n)", ["x", "y"]),
    (
        (
            "(SELECT COUNT(*) FROM (SELECT k, SUM(x) FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3"
            " UNION ALL SELECT 'b', 2) GROUP BY ALL))"
        ),
        2,
    ),
    (
        (
            "(SELECT COUNT(*) FROM (SELECT k, x, COUNT(*) FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT"
            " 'a', 3 UNION ALL SELECT 'b', 2) GROUP BY ROLLUP(k, x)))"
        ),
        6,
    ),
    (
        (
            "ARRAY(SELECT IFNULL(k, '-') FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL"
            " SELECT 'b', 2) GROUP BY GROUPING SETS (ROLLUP(k)) ORDER BY k)"
        ),
        ["-", "a", "b"],
    ),
    (
        (
            "ARRAY(SELECT SUM(x) FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL SELECT 'b',"
            " 2) GROUP BY CUBE(k) ORDER BY 1)"
        ),
        [2, 4, 6],
    ),
    (
        (
            "(SELECT COUNT(*) FROM (SELECT k, x FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION"
            " ALL SELECT 'b', 2) GROUP BY GROUPING SETS (k, x)))"
        ),
        5,
    ),
    (("(SELECT SUM(x) FROM (SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL SELECT 'b', 2) GROUP BY ())"), 6),
    ("(SELECT a FROM (SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, 4 AS a) WHERE b = 3)", 4),
    ("ARRAY(SELECT x FROM (SELECT 1 AS x EXCEPT DISTINCT SELECT 1))", []),
    ("ARRAY(SELECT x FROM UNNEST([1, 2, 3]) x ORDER BY x LIMIT 0)", []),
    ("(SELECT COUNT(*) FROM (SELECT AS VALUE 5))", 1),
    ("ARRAY(SELECT AS STRUCT x FROM UNNEST([1]) x)[OFFSET(0)].x", 1),
    ("(SELECT AS VALUE STRUCT(4 AS a)).a", 4),
    ("ARRAY(SELECT DISTINCT k FROM (SELECT STRUCT(1 AS a).a AS k UNION ALL SELECT 1))", [1]),
    (("(WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n * 2 FROM t WHERE n < 20) SELECT MAX(n) FROM t)"), 32),
    ("(SELECT COUNT(*) FROM UNNEST([1, 2]) a INNER JOIN UNNEST([2, 3]) b ON a < b)", 3),
    ("(SELECT COUNT(*) FROM UNNEST([1, 2]) a RIGHT JOIN UNNEST([2, 3]) b ON a = b WHERE a IS NULL)", 1),
    ("(SELECT SUM(x) FROM (SELECT 1 AS i, 2 AS x) a JOIN (SELECT 1 AS i, 3 AS y) b USING (i))", 2),
    ("(SELECT i FROM (SELECT 1 AS i) a FULL JOIN (SELECT 2 AS i) b USING (i) ORDER BY i LIMIT 1)", 1),
    ("(SELECT COUNT(*) FROM UNNEST([1, 2, 3]) x WHERE x IN (SELECT y FROM UNNEST([2, 3]) y))", 2),
    ("(SELECT MAX(x) FROM (SELECT x FROM UNNEST([1, 2, 3]) x ORDER BY x LIMIT 2))", 2),
    ("ARRAY(SELECT (SELECT MAX(y) FROM UNNEST([x, 5]) y) FROM UNNEST([1, 9]) x ORDER BY x)", [5, 9]),
    ("(FROM UNNEST([1, 2, 3]) AS x |> WHERE x > 1 |> AGGREGATE SUM(x) AS s)", 5),
    ("IF(EXISTS(SELECT 1 FROM UNNEST([1]) x WHERE x = 2), 'y', 'n')", "n"),
    ("(SELECT x.a FROM (SELECT STRUCT(5 AS a) AS x))", 5),
    ("(SELECT TO_JSON_STRING(t) FROM (SELECT s.* FROM (SELECT STRUCT(1 AS a, 2 AS b) AS s)) t)", '{"a":1,"b":2}'),
    ("(SELECT TO_JSON_STRING(t) FROM (SELECT * EXCEPT (a), a AS z FROM (SELECT 1 AS a, 2 AS b)) t)", '{"b":2,"z":1}'),
    ("ARRAY(SELECT x FROM UNNEST([3, 1, 2]) AS x ORDER BY -x)", [3, 2, 1]),
    ("ARRAY(SELECT x FROM UNNEST(['b', NULL, 'a']) x WHERE x IS NOT NULL ORDER BY x DESC)", ["b", "a"]),
)
OTHERS: tuple[tuple[str, Any], ...] = (
    ("ST_ASTEXT(ST_GEOGPOINT(1, 2))", "POINT(1 2)"),
    ("ST_X(ST_GEOGPOINT(1.5, 2))", 1.5),
    ("ST_Y(ST_GEOGPOINT(1.5, 2))", 2.0),
    ("IF(FALSE, ARRAY(SELECT x FROM UNNEST(GENERATE_ARRAY(1, 5, 0)) x), [7])", [7]),
    ("TO_HEX(ST_ASBINARY(ST_GEOGPOINT(1, 2)))", "0101000000000000000000f03f0000000000000040"),
    ("ST_NUMPOINTS(ST_GEOGFROMTEXT('LINESTRING(0 0, 0 1)'))", 2),
    ("ST_GEOMETRYTYPE(ST_GEOGPOINT(0, 0))", "ST_Point"),
    ("GENERATE_UUID() != GENERATE_UUID()", True),
    ("LENGTH(GENERATE_UUID())", 36),
    ("UNIX_SECONDS(CURRENT_TIMESTAMP()) > 0", True),
    ("CURRENT_DATE('Asia/Tokyo') >= CURRENT_DATE('America/New_York')", True),
    ("TIME_DIFF(CURRENT_TIME(), CURRENT_TIME('UTC'), HOUR)", 0),
    ("GENERATE_RANGE_ARRAY(RANGE(DATE '2020-01-01', DATE '2020-01-03'), INTERVAL 1 DAY) IS NOT NULL", True),
    ("CAST(1.256 AS NUMERIC(5, 2))", Decimal("1.26")),
    ("CAST(CAST(1.256 AS NUMERIC(5, 2)) AS STRING)", "1.26"),
    ("CAST(CAST(1.25 AS FLOAT64) AS NUMERIC(4, 1))", Decimal("1.3")),
    ("CAST(-1.25 AS NUMERIC(4, 1))", Decimal("-1.3")),
    ("CAST('1.256' AS NUMERIC(5, 2)) + 1", Decimal("2.26")),
    ("SAFE_CAST('1234.5' AS NUMERIC(4, 1))", None),
    ("SAFE_CAST('123.45' AS NUMERIC(4, 1))", Decimal("123.5")),
)
