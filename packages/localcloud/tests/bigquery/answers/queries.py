"""Documented answers of aggregates, windows and clauses of queries."""

from __future__ import annotations

import math
from typing import Any

AGGREGATES: tuple[tuple[str, Any], ...] = (
    ("(SELECT COUNT(x) FROM UNNEST([1, NULL, 3]) x)", 2),
    ("(SELECT COUNT(*) FROM UNNEST([1, NULL, 3]) x)", 3),
    ("(SELECT COUNT(DISTINCT x) FROM UNNEST([1, 1, NULL, 3]) x)", 2),
    ("(SELECT SUM(DISTINCT x) FROM UNNEST([1, 1, 3]) x)", 4),
    ("(SELECT SUM(x) FROM UNNEST(ARRAY<INT64>[]) x)", None),
    ("(SELECT COUNT(x) FROM UNNEST(ARRAY<INT64>[]) x)", 0),
    ("(SELECT AVG(x) FROM UNNEST([0, NULL, 4]) x)", 2.0),
    ("(SELECT COUNTIF(x IS NULL) FROM UNNEST([1, NULL]) x)", 1),
    ("(SELECT LOGICAL_OR(x) FROM UNNEST([NULL, FALSE, TRUE]) x)", True),
    ("(SELECT LOGICAL_AND(x) FROM UNNEST([NULL, TRUE]) x)", True),
    ("(SELECT BIT_AND(x) FROM UNNEST([7, 3]) x)", 3),
    ("(SELECT BIT_OR(x) FROM UNNEST([4, 3]) x)", 7),
    ("(SELECT MIN(x) FROM UNNEST(['b', 'a']) x)", "a"),
    ("(SELECT STDDEV_POP(x) FROM UNNEST([1, 3]) x)", 1.0),
    ("(SELECT STDDEV_SAMP(x) FROM UNNEST([5]) x)", None),
    ("(SELECT VARIANCE(x) FROM UNNEST([1, 3]) x)", 2.0),
    ("(SELECT VAR_SAMP(x) FROM UNNEST([1.0, 2.0, 3.0]) x)", 1.0),
    ("(SELECT COVAR_POP(x, 2 * x) FROM UNNEST([1.0, 3.0]) x)", 2.0),
    ("(SELECT COVAR_SAMP(x, x) FROM UNNEST([1.0, 3.0]) x)", 2.0),
    ("(SELECT CORR(x, -x) FROM UNNEST([1.0, 2.0, 4.0]) x)", -1.0),
    ("(SELECT STRING_AGG(x ORDER BY x) FROM UNNEST(['b', 'a']) x)", "a,b"),
    ("(SELECT STRING_AGG(x, '|' ORDER BY x DESC LIMIT 2) FROM UNNEST(['b', 'a', 'c']) x)", "c|b"),
    ("(SELECT STRING_AGG(DISTINCT x, '-' ORDER BY x) FROM UNNEST(['b', 'a', 'b']) x)", "a-b"),
    ("(SELECT STRING_AGG(x, ',' ORDER BY x) FROM UNNEST(['b', NULL]) x)", "b"),
    ("(SELECT ARRAY_AGG(x ORDER BY x DESC LIMIT 2) FROM UNNEST([1, 3, 2]) x)", [3, 2]),
    ("(SELECT ARRAY_AGG(x IGNORE NULLS ORDER BY x) FROM UNNEST([2, NULL, 1]) x)", [1, 2]),
    ("(SELECT ARRAY_AGG(DISTINCT x ORDER BY x) FROM UNNEST([2, 1, 2]) x)", [1, 2]),
    ("(SELECT ARRAY_CONCAT_AGG(x ORDER BY ARRAY_LENGTH(x)) FROM (SELECT [1, 2] x UNION ALL SELECT [3]))", [3, 1, 2]),
    ("(SELECT MIN_BY(n, x) FROM (SELECT 'a' AS n, 2 AS x UNION ALL SELECT 'b', 1))", "b"),
    ("(SELECT ANY_VALUE(n HAVING MAX x) FROM (SELECT 'a' AS n, 2 AS x UNION ALL SELECT 'b', 1))", "a"),
    ("(SELECT ANY_VALUE(n HAVING MIN x) FROM (SELECT 'a' AS n, 2 AS x UNION ALL SELECT 'b', 1))", "b"),
    ("(SELECT APPROX_QUANTILES(x, 2)[OFFSET(1)] FROM UNNEST([1, 2, 3]) x)", 2),
    ("(SELECT APPROX_TOP_COUNT(x, 1)[OFFSET(0)].count FROM UNNEST(['a', 'b', 'a']) x)", 2),
    ("(SELECT AVG(x) FROM UNNEST([CAST('NaN' AS FLOAT64), 1]) x)", math.nan),
    ("(SELECT SUM(IF(x > 1, x, 0)) FROM UNNEST([1, 2, 3]) x)", 5),
    ("(SELECT SAFE_DIVIDE(COUNTIF(x), COUNT(*)) FROM UNNEST([TRUE, FALSE]) x)", 0.5),
)
_LETTERS = "(SELECT 'a' AS k, 1 AS x UNION ALL SELECT 'a', 3 UNION ALL SELECT 'b', 2)"
WINDOWS: tuple[tuple[str, Any], ...] = (
    ("ARRAY(SELECT ROW_NUMBER() OVER (ORDER BY x DESC) FROM UNNEST([5, 9, 7]) x ORDER BY x)", [3, 2, 1]),
    ("ARRAY(SELECT DENSE_RANK() OVER (ORDER BY x) FROM UNNEST([1, 1, 2]) x ORDER BY 1)", [1, 1, 2]),
    ("ARRAY(SELECT PERCENT_RANK() OVER (ORDER BY x) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [0.0, 0.5, 1.0]),
    ("ARRAY(SELECT CUME_DIST() OVER (ORDER BY x) FROM UNNEST([1, 1, 2, 3]) x ORDER BY x)", [0.5, 0.5, 0.75, 1.0]),
    ("ARRAY(SELECT IFNULL(LEAD(x) OVER (ORDER BY x), 0) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [2, 3, 0]),
    ("ARRAY(SELECT LAG(x, 2, -1) OVER (ORDER BY x) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [-1, -1, 1]),
    ("ARRAY(SELECT FIRST_VALUE(x) OVER (ORDER BY x DESC) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [3, 3, 3]),
    ("ARRAY(SELECT LAST_VALUE(x) OVER (ORDER BY x) FROM UNNEST([1, 2, 3]) x ORDER BY x)", [1, 2, 3]),
    (
        (
            "ARRAY(SELECT LAST_VALUE(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
            " FROM UNNEST([1, 2, 3]) x ORDER BY x)"
        ),
        [3, 3, 3],
    ),
    (
        "ARRAY(SELECT IFNULL(NTH_VALUE(x, 2) OVER (ORDER BY x), 0) FROM UNNEST([1, 2, 3]) x ORDER BY x)",
        [0, 2, 2],
    ),
    ("ARRAY(SELECT CAST(SUM(x) OVER (ORDER BY x) AS INT64) FROM UNNEST([1, 2, 2, 3]) x ORDER BY x)", [1, 5, 5, 8]),
    (
        (
            "ARRAY(SELECT CAST(SUM(x) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) AS INT64)"
            " FROM UNNEST([1, 2, 2, 3]) x ORDER BY 1)"
        ),
        [1, 3, 5, 8],
    ),
    (
        (
            "ARRAY(SELECT CAST(SUM(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS INT64)"
            " FROM UNNEST([1, 2, 3, 4]) x ORDER BY x)"
        ),
        [3, 6, 9, 7],
    ),
    (
        (
            "ARRAY(SELECT COUNT(*) OVER (ORDER BY x RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)"
            " FROM UNNEST([1, 2, 3, 10]) x ORDER BY x)"
        ),
        [1, 2, 3, 1],
    ),
    (
        (
            "ARRAY(SELECT CAST(IFNULL(SUM(x) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), 0) AS INT64)"
            " FROM UNNEST([1, 2, 3]) x ORDER BY x)"
        ),
        [0, 1, 3],
    ),
    (f"ARRAY(SELECT CAST(SUM(x) OVER (PARTITION BY k) AS INT64) FROM {_LETTERS} ORDER BY k, x)", [4, 4, 2]),
    (f"ARRAY(SELECT AVG(x) OVER (PARTITION BY k) FROM {_LETTERS} ORDER BY k, x)", [2.0, 2.0, 2.0]),
    (f"ARRAY(SELECT MAX(x) OVER w FROM {_LETTERS} WINDOW w AS (PARTITION BY k) ORDER BY k, x)", [3, 3, 2]),
    (
        (
            f"ARRAY(SELECT x FROM {_LETTERS} WHERE TRUE"
            " QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) = 1 ORDER BY x)"
        ),
        [2, 3],
    ),
    (
        (
            "ARRAY(SELECT LAST_VALUE(x IGNORE NULLS) OVER (ORDER BY o) FROM UNNEST([1, NULL, 3]) x WITH OFFSET o"
            " ORDER BY o)"
        ),
        [1, 1, 3],
    ),
    ("(SELECT PERCENTILE_CONT(x, 0.25) OVER () FROM UNNEST([0, 4]) x LIMIT 1)", 1.0),
    ("(SELECT PERCENTILE_CONT(x, 0) OVER () FROM UNNEST([0, 3, NULL, 1, 2]) x LIMIT 1)", 0.0),
    ("(SELECT PERCENTILE_DISC(x, 0.5) OVER () FROM UNNEST([4, 1, 2, 3]) x LIMIT 1)", 2),
    ("(SELECT PERCENTILE_DISC(x, 1) OVER () FROM UNNEST(['c', NULL, 'b', 'a']) x LIMIT 1)", "c"),
)
CLAUSES: tuple[tuple[str, Any], ...] = (
    (f"ARRAY(SELECT CAST(SUM(x) AS INT64) FROM {_LETTERS} GROUP BY k ORDER BY k)", [4, 2]),
    (f"ARRAY(SELECT k FROM {_LETTERS} GROUP BY k HAVING COUNT(*) > 1)", ["a"]),
    (f"ARRAY(SELECT CAST(SUM(x) AS INT64) FROM {_LETTERS} GROUP BY ROLLUP(k) ORDER BY k)", [6, 4, 2]),
    (f"ARRAY(SELECT CAST(SUM(x) AS INT64) FROM {_LETTERS} GROUP BY GROUPING SETS (k, ()) ORDER BY k)", [6, 4, 2]),
    (f"ARRAY(SELECT GROUPING(k) FROM {_LETTERS} GROUP BY ROLLUP(k) ORDER BY k)", [1, 0, 0]),
    (f"(SELECT COUNT(*) FROM (SELECT k, x, COUNT(*) FROM {_LETTERS} GROUP BY CUBE(k, x)))", 9),
    ("ARRAY(SELECT x FROM (SELECT 1 x UNION ALL SELECT 1 UNION ALL SELECT 2) ORDER BY x)", [1, 1, 2]),
    ("ARRAY(SELECT x FROM (SELECT 1 x UNION DISTINCT SELECT 1 UNION DISTINCT SELECT 2) ORDER BY x)", [1, 2]),
    (
        "ARRAY(SELECT x FROM (SELECT * FROM UNNEST([1, 2, 2, 3]) x EXCEPT DISTINCT SELECT 3) ORDER BY x)",
        [1, 2],
    ),
    (
        "ARRAY(SELECT x FROM (SELECT * FROM UNNEST([1, 2, 2]) x INTERSECT DISTINCT SELECT * FROM UNNEST([2, 3])))",
        [2],
    ),
    (
        "(WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT SUM(n) FROM t)",
        15,
    ),
    ("(WITH a AS (SELECT 2 AS x), b AS (SELECT x * 3 AS y FROM a) SELECT y FROM b)", 6),
    (
        "ARRAY(SELECT CONCAT(n, CAST(v AS STRING)) FROM (SELECT 1 AS a, 2 AS b) UNPIVOT(v FOR n IN (a, b)) ORDER BY n)",
        ["a1", "b2"],
    ),
    (
        "(SELECT COUNT(*) FROM (SELECT 1 AS a, CAST(NULL AS INT64) AS b) UNPIVOT(v FOR n IN (a, b)))",
        1,
    ),
    (
        "(SELECT COUNT(*) FROM (SELECT 1 AS a, CAST(NULL AS INT64) AS b) UNPIVOT INCLUDE NULLS (v FOR n IN (a, b)))",
        2,
    ),
    ("(SELECT TO_JSON_STRING(t) FROM (SELECT * EXCEPT (b) FROM (SELECT 1 AS a, 2 AS b)) t)", '{"a":1}'),
    ("(SELECT TO_JSON_STRING(t) FROM (SELECT * REPLACE (a + 1 AS a) FROM (SELECT 1 AS a)) t)", '{"a":2}'),
    ("ARRAY(SELECT x FROM UNNEST([3, 1, 2]) x ORDER BY x LIMIT 1 OFFSET 1)", [2]),
    ("ARRAY(SELECT x FROM UNNEST([2, NULL, 1]) x WHERE TRUE ORDER BY x DESC NULLS FIRST LIMIT 3)[OFFSET(1)]", 2),
    (
        (
            "(SELECT SUM(a.x * b.x) FROM (SELECT 1 AS i, 2 AS x UNION ALL SELECT 2, 3) a"
            " JOIN (SELECT 1 AS i, 5 AS x UNION ALL SELECT 3, 7) b USING (i))"
        ),
        10,
    ),
    (
        "(SELECT COUNT(*) FROM UNNEST([1, 2]) a FULL JOIN UNNEST([2, 3]) b ON a = b)",
        3,
    ),
    ("(SELECT COUNT(*) FROM UNNEST([1, 2]) a CROSS JOIN UNNEST([1, 2, 3]) b)", 6),
    ("(SELECT COUNT(*) FROM UNNEST([1, NULL]) a LEFT JOIN UNNEST([1, NULL]) b ON a = b WHERE b IS NULL)", 1),
    ("ARRAY(SELECT a FROM UNNEST([1, 2, 3]) a WHERE a NOT IN (SELECT 2) ORDER BY a)", [1, 3]),
    ("(SELECT COUNT(*) FROM UNNEST([1, 2]) a WHERE a NOT IN (SELECT b FROM UNNEST([5, NULL]) b))", 0),
)
