"""Documented answers about NaN: comparisons, order, the least."""

from __future__ import annotations

import math
from typing import Any

NANS: tuple[tuple[str, Any], ...] = (
    ("CAST('NaN' AS FLOAT64) = CAST('NaN' AS FLOAT64)", False),
    ("CAST('NaN' AS FLOAT64) != CAST('NaN' AS FLOAT64)", True),
    ("CAST('NaN' AS FLOAT64) < 1", False),
    ("1 < CAST('NaN' AS FLOAT64)", False),
    ("CAST('NaN' AS FLOAT64) >= CAST('NaN' AS FLOAT64)", False),
    ("CAST('NaN' AS FLOAT64) BETWEEN 0 AND 1", False),
    ("NOT (CAST('NaN' AS FLOAT64) > 1)", True),
    ("CAST('NaN' AS FLOAT64) IN (1, CAST('NaN' AS FLOAT64))", False),
    ("CAST('NaN' AS FLOAT64) NOT IN (1, CAST('NaN' AS FLOAT64))", True),
    ("CASE CAST('NaN' AS FLOAT64) WHEN CAST('NaN' AS FLOAT64) THEN 1 ELSE 2 END", 2),
    ("IS_NAN(NULLIF(CAST('NaN' AS FLOAT64), CAST('NaN' AS FLOAT64)))", True),
    ("CAST('NaN' AS FLOAT64) IS NOT DISTINCT FROM CAST('NaN' AS FLOAT64)", True),
    ("CAST('NaN' AS FLOAT64) > CAST(NULL AS FLOAT64)", None),
    ("LEAST(CAST('NaN' AS FLOAT64), 1.0)", math.nan),
    ("(SELECT MIN(x) FROM UNNEST([CAST('NaN' AS FLOAT64), 1]) x)", math.nan),
    ("(SELECT MIN(x) FROM UNNEST([CAST('NaN' AS FLOAT64), NULL]) x)", math.nan),
    (
        (
            "ARRAY(SELECT MIN(x) OVER (ORDER BY o) FROM UNNEST([2.0, CAST('NaN' AS FLOAT64)]) x WITH OFFSET"
            " o ORDER BY o)"
        ),
        [2.0, math.nan],
    ),
    (
        "ARRAY(SELECT x FROM UNNEST([1.0, CAST('NaN' AS FLOAT64), CAST('-inf' AS FLOAT64)]) x ORDER BY x)",
        [math.nan, -math.inf, 1.0],
    ),
    (
        ("ARRAY(SELECT x FROM UNNEST([1.0, CAST('NaN' AS FLOAT64), CAST('-inf' AS FLOAT64)]) x ORDER BY x DESC)"),
        [1.0, -math.inf, math.nan],
    ),
    ("ARRAY(SELECT 1.0 AS x UNION ALL SELECT CAST('NaN' AS FLOAT64) ORDER BY x)", [math.nan, 1.0]),
    (
        ("ARRAY(SELECT DISTINCT x FROM UNNEST([1.0, CAST('NaN' AS FLOAT64), CAST('NaN' AS FLOAT64)]) x ORDER BY x)"),
        [math.nan, 1.0],
    ),
    ("(SELECT ARRAY_AGG(x ORDER BY x DESC) FROM UNNEST([CAST('NaN' AS FLOAT64), 1.0]) x)", [1.0, math.nan]),
    (
        (
            "ARRAY(SELECT RANK() OVER (ORDER BY x DESC) FROM UNNEST([CAST('NaN' AS FLOAT64), 1.0]) x WITH"
            " OFFSET o ORDER BY o)"
        ),
        [2, 1],
    ),
    ("ARRAY(SELECT x FROM UNNEST([CAST('NaN' AS FLOAT64), 1.0]) x WHERE x > 0)", [1.0]),
    ("(SELECT COUNTIF(NOT x > 0) FROM UNNEST([CAST('NaN' AS FLOAT64), 1.0]) x)", 1),
    (
        (
            "(SELECT COUNT(*) FROM UNNEST([CAST('NaN' AS FLOAT64), 1.0]) x JOIN UNNEST([CAST('NaN' AS"
            " FLOAT64), 1.0]) y ON x = y)"
        ),
        1,
    ),
    ("(SELECT COUNT(DISTINCT x) FROM UNNEST([CAST('NaN' AS FLOAT64), CAST('NaN' AS FLOAT64), 1.0]) x)", 2),
    (
        (
            "ARRAY(SELECT COUNT(*) FROM UNNEST([CAST('NaN' AS FLOAT64), CAST('NaN' AS FLOAT64), 1.0]) x"
            " GROUP BY x ORDER BY x)"
        ),
        [2, 1],
    ),
)
