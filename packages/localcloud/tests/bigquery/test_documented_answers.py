"""Answers that BigQuery's reference documents, given by the local BigQuery: what is not here may differ.

Facts are from the reference of functions and operators, cloud.google.com/bigquery/docs/reference/standard-sql. What
cannot be answered as there is refused by name; what still differs without a word stands in `OTHERWISE`, and in the
limits of docs/localcloud.md.
"""

from __future__ import annotations

import datetime as dt
import math
from datetime import UTC
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, GoogleAPICallError
from google.cloud import bigquery

from packages.localcloud.tests.bigquery.answers import numbers, queries, structures, texts, times
from packages.localcloud.tests.bigquery.answers.otherwise import NOT_OFFERED, OTHERWISE

DOCUMENTED: dict[str, tuple[tuple[str, Any], ...]] = {
    "times": (
        ("TIMESTAMP_DIFF(TIMESTAMP '2001-02-01 01:00:00', TIMESTAMP '2001-02-01 00:00:01', HOUR)", 0),
        ("TIMESTAMP_DIFF(TIMESTAMP '2010-07-07 10:20:00+00', TIMESTAMP '2008-12-25 15:30:00+00', HOUR)", 13410),
        ("TIMESTAMP_DIFF(TIMESTAMP '2018-08-14', TIMESTAMP '2018-10-14', DAY)", -61),
        ("TIMESTAMP_DIFF(TIMESTAMP '2020-01-02 01:00:00', TIMESTAMP '2020-01-01 23:00:00', DAY)", 0),
        ("TIMESTAMP_DIFF(TIMESTAMP '2020-01-01 00:00:59', TIMESTAMP '2020-01-01 00:00:00', MINUTE)", 0),
        ("TIMESTAMP_DIFF(TIMESTAMP '2020-01-01 00:01:00', TIMESTAMP '2020-01-01 00:00:01', MINUTE)", 0),
        ("DATETIME_DIFF(DATETIME '2010-07-07 10:20:00', DATETIME '2008-12-25 15:30:00', DAY)", 559),
        ("DATETIME_DIFF(DATETIME '2017-10-15 00:00:00', DATETIME '2017-10-14 00:00:00', WEEK)", 1),
        ("DATETIME_DIFF(DATETIME '2017-10-15', DATETIME '2017-10-14', DAY)", 1),
        ("DATETIME_DIFF(DATETIME '2017-12-30', DATETIME '2014-12-30', YEAR)", 3),
        ("DATETIME_DIFF(DATETIME '2017-12-30', DATETIME '2014-12-30', ISOYEAR)", 2),
        ("DATETIME_DIFF(DATETIME '2017-12-18', DATETIME '2017-12-17', WEEK(SUNDAY))", 0),
        ("DATETIME_DIFF(DATETIME '2017-12-18', DATETIME '2017-12-17', WEEK(MONDAY))", 1),
        ("DATETIME_DIFF(DATETIME '2017-12-18', DATETIME '2017-12-17', ISOWEEK)", 1),
        ("DATE_DIFF(DATE '2010-07-07', DATE '2008-12-25', DAY)", 559),
        ("DATE_DIFF(DATE '2017-10-15', DATE '2017-10-14', WEEK)", 1),
        ("DATE_DIFF(DATE '2017-12-30', DATE '2014-12-30', ISOYEAR)", 2),
        ("DATE_DIFF(DATE '2017-12-18', DATE '2017-12-17', WEEK(MONDAY))", 1),
        ("DATE_DIFF(DATE '2017-12-18', DATE '2017-12-17', WEEK)", 0),
        ("DATE_DIFF(DATE '2018-01-31', DATE '2017-12-01', MONTH)", 1),
        ("DATE_DIFF(DATE '2018-04-01', DATE '2017-12-31', QUARTER)", 2),
        ("TIME_DIFF(TIME '15:30:00', TIME '14:35:00', MINUTE)", 55),
        ("TIME_DIFF(TIME '15:30:00', TIME '14:35:00', HOUR)", 1),
        ("DATE_TRUNC(DATE '2008-12-25', MONTH)", dt.date(2008, 12, 1)),
        ("DATE_TRUNC(DATE '2017-11-05', WEEK(MONDAY))", dt.date(2017, 10, 30)),
        ("DATE_TRUNC(DATE '2017-11-05', WEEK)", dt.date(2017, 11, 5)),
        ("DATE_TRUNC(DATE '2017-11-06', WEEK)", dt.date(2017, 11, 5)),
        ("DATE_TRUNC(DATE '2017-11-06', WEEK(THURSDAY))", dt.date(2017, 11, 2)),
        ("DATE_TRUNC(DATE '2017-11-05', ISOWEEK)", dt.date(2017, 10, 30)),
        ("DATE_TRUNC(DATE '2015-06-15', ISOYEAR)", dt.date(2014, 12, 29)),
        ("DATE_TRUNC(DATE '2015-06-15', QUARTER)", dt.date(2015, 4, 1)),
        (
            "TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00+00', DAY, 'UTC')",
            dt.datetime(2008, 12, 25, 0, 0, tzinfo=UTC),
        ),
        (
            "TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:00+00', DAY, 'America/Los_Angeles')",
            dt.datetime(2008, 12, 25, 8, 0, tzinfo=UTC),
        ),
        (
            "TIMESTAMP_TRUNC(TIMESTAMP '2017-11-06 00:00:00+12', WEEK(MONDAY), 'UTC')",
            dt.datetime(2017, 10, 30, 0, 0, tzinfo=UTC),
        ),
        (
            "TIMESTAMP_TRUNC(TIMESTAMP '2017-11-06 00:00:00+12', WEEK(MONDAY), 'Pacific/Auckland')",
            dt.datetime(2017, 11, 5, 11, 0, tzinfo=UTC),
        ),
        ("TIMESTAMP_TRUNC(TIMESTAMP '2008-12-25 15:30:29', MINUTE)", dt.datetime(2008, 12, 25, 15, 30, tzinfo=UTC)),
        ("DATETIME_TRUNC(DATETIME '2017-11-05 00:00:00', WEEK(MONDAY))", dt.datetime(2017, 10, 30, 0, 0)),
        ("DATETIME_TRUNC(DATETIME '2015-06-15 00:00:00', ISOYEAR)", dt.datetime(2014, 12, 29, 0, 0)),
        ("TIME_TRUNC(TIME '15:30:00', HOUR)", dt.time(15, 0)),
        ("EXTRACT(WEEK FROM DATE '2017-11-05')", 45),
        ("EXTRACT(WEEK FROM DATE '2017-01-01')", 1),
        ("EXTRACT(WEEK FROM DATE '2016-01-01')", 0),
        ("EXTRACT(WEEK(MONDAY) FROM DATE '2017-11-05')", 44),
        ("EXTRACT(WEEK(MONDAY) FROM DATE '2017-11-06')", 45),
        ("EXTRACT(ISOWEEK FROM DATE '2017-11-05')", 44),
        ("EXTRACT(ISOYEAR FROM DATE '2016-01-01')", 2015),
        ("EXTRACT(DAYOFWEEK FROM DATE '2013-12-25')", 4),
        ("EXTRACT(DAYOFWEEK FROM DATE '2017-11-05')", 1),
        ("EXTRACT(DAYOFYEAR FROM DATE '2013-12-25')", 359),
        ("EXTRACT(QUARTER FROM DATE '2013-12-25')", 4),
        ("EXTRACT(DAY FROM TIMESTAMP '2008-12-25 05:30:00+00' AT TIME ZONE 'America/Los_Angeles')", 24),
        ("EXTRACT(HOUR FROM TIMESTAMP '2008-12-25 05:30:00+00' AT TIME ZONE 'America/Los_Angeles')", 21),
        ("EXTRACT(MILLISECOND FROM TIMESTAMP '2008-12-25 05:30:01.123456+00')", 123),
        ("EXTRACT(MICROSECOND FROM TIMESTAMP '2008-12-25 05:30:01.123456+00')", 123456),
        ("EXTRACT(SECOND FROM TIMESTAMP '2008-12-25 05:30:01.123456+00')", 1),
        ("EXTRACT(DATE FROM TIMESTAMP '2008-12-25 05:30:00+00')", dt.date(2008, 12, 25)),
        ("EXTRACT(TIME FROM TIMESTAMP '2008-12-25 05:30:00+00')", dt.time(5, 30)),
        ("DATE_ADD(DATE '2008-01-31', INTERVAL 1 MONTH)", dt.date(2008, 2, 29)),
        ("DATE_SUB(DATE '2008-03-31', INTERVAL 1 MONTH)", dt.date(2008, 2, 29)),
        ("DATE_ADD(DATE '2008-12-25', INTERVAL 5 DAY)", dt.date(2008, 12, 30)),
        ("DATE_ADD(DATE '2008-12-25', INTERVAL 1 QUARTER)", dt.date(2009, 3, 25)),
        ("DATE_ADD(DATE '2008-12-25', INTERVAL 2 WEEK)", dt.date(2009, 1, 8)),
        ("LAST_DAY(DATE '2008-11-25', MONTH)", dt.date(2008, 11, 30)),
        ("LAST_DAY(DATE '2008-11-25')", dt.date(2008, 11, 30)),
        ("LAST_DAY(DATE '2008-11-25', YEAR)", dt.date(2008, 12, 31)),
        ("LAST_DAY(DATE '2008-11-10', WEEK(SUNDAY))", dt.date(2008, 11, 15)),
        ("LAST_DAY(DATE '2008-11-10', WEEK(MONDAY))", dt.date(2008, 11, 16)),
        ("DATE_FROM_UNIX_DATE(14238)", dt.date(2008, 12, 25)),
        ("UNIX_DATE(DATE '2008-12-25')", 14238),
        ("UNIX_SECONDS(TIMESTAMP '2008-12-25 15:30:00+00')", 1230219000),
        ("UNIX_MILLIS(TIMESTAMP '2008-12-25 15:30:00+00')", 1230219000000),
        ("UNIX_MICROS(TIMESTAMP '2008-12-25 15:30:00+00')", 1230219000000000),
        ("UNIX_SECONDS(TIMESTAMP '1970-01-01 00:00:01.8+00')", 1),
        ("UNIX_SECONDS(TIMESTAMP '1969-12-31 23:59:58.5+00')", -2),
        ("TIMESTAMP_SECONDS(1230219000)", dt.datetime(2008, 12, 25, 15, 30, tzinfo=UTC)),
        ("TIMESTAMP_MILLIS(1230219000000)", dt.datetime(2008, 12, 25, 15, 30, tzinfo=UTC)),
        ("TIMESTAMP_MICROS(1230219000000000)", dt.datetime(2008, 12, 25, 15, 30, tzinfo=UTC)),
        (
            "TIMESTAMP_ADD(TIMESTAMP '2008-12-25 15:30:00+00', INTERVAL 10 MINUTE)",
            dt.datetime(2008, 12, 25, 15, 40, tzinfo=UTC),
        ),
        (
            "TIMESTAMP_SUB(TIMESTAMP '2008-12-25 15:30:00+00', INTERVAL 36 HOUR)",
            dt.datetime(2008, 12, 24, 3, 30, tzinfo=UTC),
        ),
        ("FORMAT_TIMESTAMP('%c', TIMESTAMP '2050-12-25 15:30:55+00', 'UTC')", "Sun Dec 25 15:30:55 2050"),
        ("FORMAT_TIMESTAMP('%b-%d-%Y', TIMESTAMP '2050-12-25 15:30:55+00')", "Dec-25-2050"),
        ("FORMAT_TIMESTAMP('%b %Y', TIMESTAMP '2050-12-25 15:30:55+00')", "Dec 2050"),
        ("FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%SZ', TIMESTAMP '2050-12-25 15:30:55', 'UTC')", "2050-12-25T15:30:55Z"),
        ("FORMAT_TIMESTAMP('%E3S', TIMESTAMP '2050-12-25 15:30:55.123456+00')", "55.123"),
        ("FORMAT_TIMESTAMP('%E*S', TIMESTAMP '2050-12-25 15:30:55.1234+00')", "55.1234"),
        ("FORMAT_TIMESTAMP('%E6S', TIMESTAMP '2050-12-25 15:30:55.1234+00')", "55.123400"),
        ("FORMAT_TIMESTAMP('%F %T', TIMESTAMP '2050-12-25 15:30:55+00', 'America/New_York')", "2050-12-25 10:30:55"),
        ("FORMAT_TIMESTAMP('%Ez', TIMESTAMP '2050-12-25 15:30:55+00', 'America/New_York')", "-05:00"),
        ("FORMAT_TIMESTAMP('%z', TIMESTAMP '2050-12-25 15:30:55+00', 'America/New_York')", "-0500"),
        ("FORMAT_TIMESTAMP('%j', TIMESTAMP '2008-12-25 15:30:00+00')", "360"),
        ("FORMAT_TIMESTAMP('%a %A %B %p %I', TIMESTAMP '2008-12-25 15:30:00+00')", "Thu Thursday December PM 03"),
        ("FORMAT_TIMESTAMP('%V %G %u %w', TIMESTAMP '2017-11-05 00:00:00+00')", "44 2017 7 0"),
        ("FORMAT_DATE('%x', DATE '2008-12-25')", "12/25/08"),
        ("FORMAT_DATE('%b-%d-%Y', DATE '2008-12-25')", "Dec-25-2008"),
        ("FORMAT_DATE('%Y%m%d', DATE '2008-12-25')", "20081225"),
        ("FORMAT_DATETIME('%c', DATETIME '2008-12-25 15:30:00')", "Thu Dec 25 15:30:00 2008"),
        ("PARSE_DATE('%A %b %e %Y', 'Thursday Dec 25 2008')", dt.date(2008, 12, 25)),
        ("PARSE_DATE('%Y%m%d', '20081225')", dt.date(2008, 12, 25)),
        ("PARSE_DATE('%F', '2008-12-25')", dt.date(2008, 12, 25)),
        (
            "PARSE_TIMESTAMP('%a %b %e %I:%M:%S %Y', 'Thu Dec 25 07:30:00 2008')",
            dt.datetime(2008, 12, 25, 7, 30, tzinfo=UTC),
        ),
        ("PARSE_TIMESTAMP('%c', 'Thu Dec 25 07:30:00 2008')", dt.datetime(2008, 12, 25, 7, 30, tzinfo=UTC)),
        (
            "PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%S', '2008-12-25 07:30:00', 'America/New_York')",
            dt.datetime(2008, 12, 25, 12, 30, tzinfo=UTC),
        ),
        ("PARSE_DATETIME('%Y-%m-%d %H:%M:%S', '1998-10-18 13:45:55')", dt.datetime(1998, 10, 18, 13, 45, 55)),
        ("PARSE_TIME('%H', '15')", dt.time(15, 0)),
        ("STRING(TIMESTAMP '2008-12-25 15:30:00+00')", "2008-12-25 15:30:00+00"),
        ("STRING(DATE '2008-12-25')", "2008-12-25"),
        ("CAST(b'abc' AS STRING)", "abc"),
        ("CAST(1.5e0 + RAND() * 0 AS INT64)", 2),
        ("TO_JSON_STRING(ARRAY(SELECT x FROM UNNEST([1, 2]) AS x))", "[1,2]"),
        ("STRING(TIMESTAMP '2008-12-25 15:30:00+00', 'UTC')", "2008-12-25 15:30:00+00"),
        ("STRING(TIMESTAMP '2008-12-25 15:30:00+00', 'America/New_York')", "2008-12-25 10:30:00-05"),
        ("CAST(TIMESTAMP '2008-12-25 15:30:00+00' AS STRING)", "2008-12-25 15:30:00+00"),
        ("CAST(TIMESTAMP '2008-12-25 15:30:00.5+00' AS STRING)", "2008-12-25 15:30:00.500+00"),
        ("CAST(DATETIME '2008-12-25 15:30:00' AS STRING)", "2008-12-25 15:30:00"),
        ("CAST(DATE '2008-12-25' AS STRING)", "2008-12-25"),
        ("TIMESTAMP('2008-12-25 15:30:00', 'America/Los_Angeles')", dt.datetime(2008, 12, 25, 23, 30, tzinfo=UTC)),
        ("TIMESTAMP(DATE '2008-12-25', 'America/Los_Angeles')", dt.datetime(2008, 12, 25, 8, 0, tzinfo=UTC)),
        ("TIMESTAMP(DATETIME '2008-12-25 15:30:00')", dt.datetime(2008, 12, 25, 15, 30, tzinfo=UTC)),
        ("TIMESTAMP('2008-12-25 15:30:00+03')", dt.datetime(2008, 12, 25, 12, 30, tzinfo=UTC)),
        ("DATE(TIMESTAMP '2016-12-25 05:30:00+07', 'America/Los_Angeles')", dt.date(2016, 12, 24)),
        ("DATE(2016, 12, 25)", dt.date(2016, 12, 25)),
        ("DATE(DATETIME '2016-12-25 23:59:59')", dt.date(2016, 12, 25)),
        ("DATETIME(TIMESTAMP '2008-12-25 05:30:00+00', 'America/Los_Angeles')", dt.datetime(2008, 12, 24, 21, 30)),
        ("DATETIME(2008, 12, 25, 5, 30, 0)", dt.datetime(2008, 12, 25, 5, 30)),
        ("TIME(15, 30, 0)", dt.time(15, 30)),
        ("TIME(TIMESTAMP '2008-12-25 15:30:00+08', 'America/Los_Angeles')", dt.time(23, 30)),
        ("DATE '2020-09-22' + 1", dt.date(2020, 9, 23)),
        ("DATE '2020-09-22' - 7", dt.date(2020, 9, 15)),
        (
            "GENERATE_DATE_ARRAY('2016-10-05', '2016-10-08')",
            [dt.date(2016, 10, 5), dt.date(2016, 10, 6), dt.date(2016, 10, 7), dt.date(2016, 10, 8)],
        ),
        (
            "GENERATE_DATE_ARRAY('2016-10-05', '2016-10-01', INTERVAL -3 DAY)",
            [dt.date(2016, 10, 5), dt.date(2016, 10, 2)],
        ),
        (
            "GENERATE_DATE_ARRAY('2016-01-01', '2016-04-30', INTERVAL 2 MONTH)",
            [dt.date(2016, 1, 1), dt.date(2016, 3, 1)],
        ),
        ("SAFE_CAST('2020-13-01' AS DATE)", None),
        ("REGEXP_EXTRACT('foo@example.com', r'^[a-zA-Z0-9_.+-]+')", "foo"),
        ("REGEXP_EXTRACT('foo@example.com', r'@([a-z]+)')", "example"),
        ("REGEXP_EXTRACT('ab', r'x')", None),
        ("REGEXP_EXTRACT('Hello Helloo and Hellooo', 'H?ello+', 1, 2)", "Helloo"),
        ("REGEXP_EXTRACT('Hello Helloo and Hellooo', 'H?ello+', 3)", "Helloo"),
        ("REGEXP_EXTRACT_ALL('a1b22', r'[0-9]+')", ["1", "22"]),
        ("DATE_ADD(DATE '2020-01-01', INTERVAL 1 YEAR)", dt.date(2021, 1, 1)),
        ("SAFE.PARSE_DATE('%F','x')", None),
        (
            "GENERATE_TIMESTAMP_ARRAY('2016-10-05 00:00:00', '2016-10-05 00:02:00', INTERVAL 1 MINUTE)",
            [
                dt.datetime(2016, 10, 5, 0, 0, tzinfo=UTC),
                dt.datetime(2016, 10, 5, 0, 1, tzinfo=UTC),
                dt.datetime(2016, 10, 5, 0, 2, tzinfo=UTC),
            ],
        ),
    ),
    "numbers": (
        ("ROUND(2.0)", 2.0),
        ("ROUND(2.5)", 3.0),
        ("ROUND(-2.5)", -3.0),
        ("ROUND(123.7, -1)", 120.0),
        ("ROUND(1.235, 2)", 1.24),
        ("TRUNC(2.8)", 2.0),
        ("TRUNC(-2.8)", -2.0),
        ("TRUNC(2.8456, 2)", 2.84),
        ("CEIL(2.3)", 3.0),
        ("FLOOR(-2.3)", -3.0),
        ("SIGN(-25)", -1),
        ("ABS(-25)", 25),
        ("DIV(20, 4)", 5),
        ("DIV(12, -7)", -1),
        ("DIV(20, 3)", 6),
        ("DIV(0, 20)", 0),
        ("DIV(-7, 2)", -3),
        ("MOD(25, 12)", 1),
        ("MOD(-5, 3)", -2),
        ("MOD(5, -3)", 2),
        ("SAFE_DIVIDE(20, 4)", 5.0),
        ("SAFE_DIVIDE(0, 20)", 0.0),
        ("SAFE_DIVIDE(20, 0)", None),
        ("7 / 2", 3.5),
        ("IEEE_DIVIDE(20.0, 4.0)", 5.0),
        ("IEEE_DIVIDE(25.0, 0.0)", math.inf),
        ("IEEE_DIVIDE(-25.0, 0.0)", -math.inf),
        ("SAFE_ADD(5, 4)", 9),
        ("SAFE_MULTIPLY(20, 4)", 80),
        ("SAFE_NEGATE(-1)", 1),
        ("SAFE_SUBTRACT(5, 4)", 1),
        ("SAFE_ADD(9223372036854775807, 1)", None),
        ("POW(2.0, 3.0)", 8.0),
        ("SQRT(25.0)", 5.0),
        ("EXP(0.0)", 1.0),
        ("LN(1.0)", 0.0),
        ("LOG(100.0, 10.0)", 2.0),
        ("LOG10(100.0)", 2.0),
        ("LOG(1)", 0.0),
        ("CBRT(27)", 3.0),
        ("GREATEST(3,5,1)", 5),
        ("LEAST(3,5,1)", 1),
        ("GREATEST(1, NULL)", None),
        ("LEAST(1, NULL)", None),
        ("RANGE_BUCKET(20, [0, 10, 20, 30, 40])", 3),
        ("RANGE_BUCKET(-10, [0, 10])", 0),
        ("RANGE_BUCKET(25, [0, 10, 20, 30, 40])", 3),
        ("RANGE_BUCKET(43, [0, 10, 20, 30, 40])", 5),
        ("IS_NAN(CAST('NaN' AS FLOAT64))", True),
        ("IS_INF(CAST('inf' AS FLOAT64))", True),
        ("1 << 3", 8),
        ("6 & 3", 2),
        ("6 | 3", 7),
        ("6 ^ 3", 5),
        ("~0", -1),
        ("BIT_COUNT(7)", 3),
        ("SAFE.LN(-1)", None),
    ),
    "casts": (
        ("CAST(1.5 AS INT64)", 2),
        ("CAST(2.5 AS INT64)", 3),
        ("CAST(-2.5 AS INT64)", -3),
        ("CAST(-1.5 AS INT64)", -2),
        ("CAST(0.5 AS INT64)", 1),
        ("CAST(NUMERIC '2.5' AS INT64)", 3),
        ("CAST(25.0 AS STRING)", "25"),
        ("CAST(1.5 AS STRING)", "1.5"),
        ("CAST(1e20 AS STRING)", "1e+20"),
        ("CAST(0.1 AS STRING)", "0.1"),
        ("CAST(TRUE AS STRING)", "true"),
        ("CAST('true' AS BOOL)", True),
        ("CAST(0 AS BOOL)", False),
        ("CAST(TRUE AS INT64)", 1),
        ("CAST('0x1f' AS INT64)", 31),
        ("CAST(' 12 ' AS INT64)", 12),
        ("SAFE_CAST('abc' AS INT64)", None),
        ("SAFE_CAST('1.5' AS INT64)", None),
        ("SAFE_CAST('1e3' AS FLOAT64)", 1000.0),
        ("CAST('+5' AS INT64)", 5),
        ("SAFE_CAST('x' AS BOOL)", None),
        ("CAST(NUMERIC '1.50' AS STRING)", "1.5"),
    ),
    "texts": (
        ("SAFE.SUBSTR('foo', 0, -2)", None),
        ("SUBSTR('apple', 2)", "pple"),
        ("SUBSTR('apple', 2, 2)", "pp"),
        ("SUBSTR('apple', -2)", "le"),
        ("SUBSTR('apple', 1, 123)", "apple"),
        ("SUBSTR('apple', 123)", ""),
        ("SUBSTR('apple', 0)", "apple"),
        ("SUBSTR('apple', 0, 2)", "ap"),
        ("SUBSTR('apple', -7, 2)", "ap"),
        ("LEFT('apple', 3)", "app"),
        ("RIGHT('apple', 3)", "ple"),
        ("LEFT('apple', 0)", ""),
        ("LENGTH('абвгд')", 5),
        ("CHAR_LENGTH('абвгд')", 5),
        ("BYTE_LENGTH('абвгд')", 10),
        ("OCTET_LENGTH('abc')", 3),
        ("CONCAT('T.P.', ' ', 'Bar')", "T.P. Bar"),
        ("CONCAT('a', NULL)", None),
        ("'a' || 'b'", "ab"),
        ("STRPOS('foo@example.com', '@')", 4),
        ("STRPOS('quxatexample', '@')", 0),
        ("INSTR('banana', 'an')", 2),
        ("INSTR('banana', 'an', 3)", 4),
        ("INSTR('banana', 'ann')", 0),
        ("SPLIT('a,b,c')", ["a", "b", "c"]),
        ("SPLIT('abc', '')", ["a", "b", "c"]),
        ("SPLIT('', ',')", [""]),
        ("SPLIT('b&a', '&')", ["b", "a"]),
        ("UPPER('foo')", "FOO"),
        ("LOWER('FOO')", "foo"),
        ("INITCAP('hello World-everyone!')", "Hello World-Everyone!"),
        ("TRIM('   apple   ')", "apple"),
        ("TRIM('***apple***', '*')", "apple"),
        ("LTRIM('***apple***', '*')", "apple***"),
        ("RTRIM('applexxz', 'xyz')", "apple"),
        ("LPAD('abc', 5)", "  abc"),
        ("LPAD('abc', 5, '*')", "**abc"),
        ("LPAD('abc', 2)", "ab"),
        ("RPAD('abc', 8, 'def')", "abcdefde"),
        ("RPAD('abc', 2)", "ab"),
        ("REPEAT('abc', 3)", "abcabcabc"),
        ("REVERSE('foo')", "oof"),
        ("REPLACE('apple pie', 'pie', 'cobbler')", "apple cobbler"),
        ("TRANSLATE('This is a cookie', 'sco', 'zku')", "Thiz iz a kuukie"),
        ("STARTS_WITH('bar', 'b')", True),
        ("ENDS_WITH('apple', 'e')", True),
        ("CONTAINS_SUBSTR('the blue house', 'Blue house')", True),
        ("REGEXP_CONTAINS('foo@example.com', r'@[a-zA-Z0-9-]+')", True),
        ("REGEXP_REPLACE('# Heading', r'^# ([a-zA-Z0-9\\s]+$)', r'<h1>\\1</h1>')", "<h1>Heading</h1>"),
        ("REGEXP_REPLACE('aaa', 'a', 'b')", "bbb"),
        ("REGEXP_INSTR('ab@cd-ef', '@[^-]*')", 3),
        ("ASCII('abcd')", 97),
        ("CHR(65)", "A"),
        ("UNICODE('âbcd')", 226),
        ("CODE_POINTS_TO_STRING([65, 255, 513])", "Aÿȁ"),
        ("TO_CODE_POINTS('foo')", [102, 111, 111]),
        ("TO_HEX(b'\\x00\\x01\\xff')", "0001ff"),
        ("FROM_HEX('00010203')", b"\x00\x01\x02\x03"),
        ("TO_BASE64(b'\\377\\340')", "/+A="),
        ("FROM_BASE64('/+A=')", b"\xff\xe0"),
        ("MD5('x') = MD5('x')", True),
        ("TO_HEX(SHA256('Hello'))", "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969"),
        ("FORMAT('%d', 10)", "10"),
        ("FORMAT('-%s-', 'test')", "-test-"),
        ("FORMAT('%05.2f', 3.14159)", "03.14"),
        ("FORMAT('%x', 255)", "ff"),
        ("FORMAT('%10d|', 5)", "         5|"),
        ("FORMAT('%-5s|', 'a')", "a    |"),
        ("FORMAT('%e', 392.65)", "3.926500e+02"),
        ("FORMAT('%g', 392.65)", "392.65"),
        ("FORMAT('%%')", "%"),
        ("FORMAT('%i', 3)", "3"),
        ("SOUNDEX('Ashcraft')", "A261"),
        ("EDIT_DISTANCE('a', 'b')", 1),
        ("NORMALIZE('a')", "a"),
        ("'abc' LIKE 'a%'", True),
        ("'abc' LIKE '_b_'", True),
        ("'Abc' LIKE 'a%'", False),
        ("FARM_FINGERPRINT('foo')", 6150913649986995171),
    ),
    "arrays": (
        ("GENERATE_ARRAY(1, 5)", [1, 2, 3, 4, 5]),
        ("GENERATE_ARRAY(0, 10, 3)", [0, 3, 6, 9]),
        ("GENERATE_ARRAY(10, 0, -3)", [10, 7, 4, 1]),
        ("GENERATE_ARRAY(4, 4, 10)", [4]),
        ("GENERATE_ARRAY(10, 0, 3)", []),
        ("[1,2,3][OFFSET(0)]", 1),
        ("[1,2,3][ORDINAL(3)]", 3),
        ("[1,2,3][SAFE_ORDINAL(9)]", None),
        ("ARRAY_LENGTH([1,2])", 2),
        ("ARRAY_LENGTH(NULL)", None),
        ("ARRAY_CONCAT([1],[2,3])", [1, 2, 3]),
        ("ARRAY_TO_STRING(['a','b',NULL],',')", "a,b"),
        ("ARRAY_TO_STRING(['a','b',NULL],',','x')", "a,b,x"),
        ("ARRAY_REVERSE([1,2,3])", [3, 2, 1]),
        ("1 IN UNNEST([1,2])", True),
        ("3 IN (1,2)", False),
        ("ARRAY_FIRST([4,5])", 4),
        ("ARRAY_LAST([4,5])", 5),
        ("ARRAY_SLICE([1,2,3,4,5], 1, 3)", [2, 3, 4]),
    ),
    "json": (
        ("JSON_VALUE('{\"a\": {\"b\": 5}}', '$.a.b')", "5"),
        ("JSON_QUERY('{\"a\": {\"b\": 5}}', '$.a')", '{"b":5}'),
        ("JSON_EXTRACT_SCALAR('{\"a\": \"x\"}', '$.a')", "x"),
        ("JSON_EXTRACT('{\"a\": \"x\"}', '$.a')", '"x"'),
        ("JSON_VALUE('{\"a\": [1]}', '$.a')", None),
        ('JSON_VALUE_ARRAY(\'["a","b"]\')', ["a", "b"]),
        ("JSON_VALUE('{\"a.b\": 1}', '$.\"a.b\"')", "1"),
        ("TO_JSON_STRING([1,2])", "[1,2]"),
        ("TO_JSON_STRING('a')", '"a"'),
        ("TO_JSON_STRING(CAST('NaN' AS FLOAT64))", '"NaN"'),
        ("TO_JSON_STRING(1.5)", "1.5"),
        ("TO_JSON_STRING(1.0)", "1"),
        ("TO_JSON_STRING(DATE '2020-01-02')", '"2020-01-02"'),
        ("TO_JSON_STRING(TIMESTAMP '2020-01-02 03:04:05+00')", '"2020-01-02T03:04:05Z"'),
        ("TO_JSON_STRING(TRUE)", "true"),
        ("TO_JSON_STRING(9007199254740993)", "9007199254740993"),
        ("TO_JSON_STRING(STRUCT(1 AS a, CAST('inf' AS FLOAT64) AS b))", '{"a":1,"b":"Infinity"}'),
        ("TO_JSON_STRING(CAST(NULL AS STRING))", "null"),
        ("TO_JSON_STRING(b'abc')", '"YWJj"'),
    ),
    "conditions": (
        ("EXISTS(SELECT 1 FROM UNNEST([1]))", True),
        ("IF(TRUE, 1, 2)", 1),
        ("IF(NULL, 1, 2)", 2),
        ("IFNULL(NULL, 3)", 3),
        ("NULLIF(1,1)", None),
        ("COALESCE(NULL, NULL, 4)", 4),
        ("CASE 3 WHEN 3 THEN 'c' ELSE 'd' END", "c"),
        ("NULL IS NULL", True),
        ("1 IS DISTINCT FROM NULL", True),
        ("NULL = 1", None),
        ("TRUE AND NULL", None),
        ("FALSE AND NULL", False),
        ("TRUE OR NULL", True),
        ("STRUCT(1 AS a, 2 AS b).a", 1),
        ("SESSION_USER() IS NOT NULL", True),
    ),
    "queries": (
        ("ARRAY(SELECT x FROM UNNEST([3,1,2]) x ORDER BY x)", [1, 2, 3]),
        ("(SELECT SUM(x) FROM UNNEST([1,2,3]) x)", 6),
        ("(SELECT STRING_AGG(x, '-' ORDER BY x) FROM UNNEST(['b','a']) x)", "a-b"),
        ("(SELECT COUNTIF(x > 1) FROM UNNEST([1,2,3]) x)", 2),
        ("(SELECT LOGICAL_AND(x) FROM UNNEST([TRUE,FALSE]) x)", False),
        ("(SELECT AVG(x) FROM UNNEST([1,2]) x)", 1.5),
        ("(SELECT STDDEV(x) FROM UNNEST([1,3]) x)", 1.4142135623730951),
        ("(SELECT VAR_POP(x) FROM UNNEST([1,3]) x)", 1.0),
        ("(SELECT CORR(x, x) FROM UNNEST([1.0,2.0,3.0]) x)", 1.0),
        ("(SELECT APPROX_COUNT_DISTINCT(x) FROM UNNEST([1,1,2]) x)", 2),
        ("(SELECT ANY_VALUE(x) FROM UNNEST([7]) x)", 7),
        ("(SELECT MAX(x) FROM UNNEST(CAST([] AS ARRAY<INT64>)) x)", None),
        ("(SELECT BIT_XOR(x) FROM UNNEST([1,3]) x)", 2),
        ("(SELECT MAX_BY(x, -x) FROM UNNEST([1,3]) x)", 1),
        ("(SELECT SUM(x) FROM UNNEST([CAST('NaN' AS FLOAT64), 1]) x)", math.nan),
        ("(SELECT MAX(x) FROM UNNEST([CAST('NaN' AS FLOAT64), 1]) x)", math.nan),
        ("(SELECT ARRAY_AGG(x ORDER BY x) FROM UNNEST([2, NULL, 1]) x WHERE x IS NOT NULL)", [1, 2]),
        ("(SELECT PERCENTILE_CONT(x, 0.5) OVER() FROM UNNEST([0, 3, 1, 2]) x LIMIT 1)", 1.5),
        ("(SELECT PERCENTILE_DISC(x, 0.5) OVER() FROM UNNEST(['c','b','a']) x LIMIT 1)", "b"),
        ("ARRAY(SELECT RANK() OVER (ORDER BY x) FROM UNNEST([1,1,2]) x ORDER BY 1)", [1, 1, 3]),
        ("ARRAY(SELECT NTILE(2) OVER (ORDER BY x) FROM UNNEST([1,2,3]) x ORDER BY x)", [1, 1, 2]),
        ("ARRAY(SELECT IFNULL(LAG(x) OVER (ORDER BY x), -1) FROM UNNEST([1,2,3]) x ORDER BY x)", [-1, 1, 2]),
        ("ARRAY(SELECT x FROM UNNEST([2,NULL,1]) x WHERE TRUE ORDER BY x NULLS LAST LIMIT 2)", [1, 2]),
        ("ARRAY(SELECT IFNULL(x, -1) FROM UNNEST([2,NULL,1]) x ORDER BY x)", [-1, 1, 2]),
        ("ARRAY(SELECT IFNULL(x, -1) FROM UNNEST([2,NULL,1]) x ORDER BY x DESC)", [2, 1, -1]),
        ("(SELECT AS STRUCT 1 AS a, 'x' AS b).b", "x"),
    ),
    "patterns": texts.PATTERNS,
    "parts of texts": texts.PARTS,
    "forms of texts": texts.FORMS,
    "codes": texts.CODES,
    "exact numbers": numbers.EXACT,
    "floats": numbers.FLOATS,
    "whole numbers": numbers.WHOLE,
    "more casts": numbers.CASTS,
    "sums of times": times.SUMS,
    "parts of times": times.PARTS,
    "formats of times": times.FORMATS,
    "more arrays": structures.ARRAYS,
    "more JSON": structures.JSON,
    "aggregates": queries.AGGREGATES,
    "windows": queries.WINDOWS,
    "clauses": queries.CLAUSES,
}
REFUSED = (
    "[1,2][OFFSET(5)]",
    "[1,2][ORDINAL(0)]",
    "CAST('abc' AS INT64)",
    "DIV(1,0)",
    "1/0",
    "MOD(1,0)",
    "LN(-1)",
    "SQRT(-1)",
    "SUBSTR('abc', 1, -1)",
    "9223372036854775807 + 1",
    "CAST('2020-13-01' AS DATE)",
    "PARSE_DATE('%F','x')",
    "(SELECT x FROM UNNEST([1,2]) x)",
    "REPEAT('a', -1)",
    "GENERATE_ARRAY(1, 5, 0)",
    "DATE(2020, 13, 1)",
    "CAST(1e30 AS INT64)",
    "ERROR('no')",
    "FROM_HEX('xy')",
    "TIMESTAMP_ADD(TIMESTAMP '2020-01-01', INTERVAL 1 MONTH)",
    "CAST('x' AS FLOAT64)",
    "1 = 'a'",
    "POW(0, -1)",
    "POW(10, 400)",
    "EXP(1000)",
)
"""As BigQuery refuses them."""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


def answer(client: bigquery.Client, expression: str) -> Any:
    """What a query of one expression gives, or the error's words."""
    try:
        (row,) = client.query_and_wait(f"SELECT {expression} AS v")
    except GoogleAPICallError as error:
        return f"refused: {error.message}"
    return row[0]


def same(one: Any, other: Any) -> bool:
    """Whether answers are equal, in type too; floats to twelve digits, NaN is NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("group", DOCUMENTED)
def test_documented_answers(client: bigquery.Client, group: str) -> None:
    found = {expression: answer(client, expression) for expression, _ in DOCUMENTED[group]}
    wrong = {e: (found[e], expected) for e, expected in DOCUMENTED[group] if not same(found[e], expected)}
    assert wrong == {}


def test_what_is_out_of_bounds_is_refused(client: bigquery.Client) -> None:
    assert [e for e in REFUSED if not str(answer(client, e)).startswith("refused")] == []


def test_what_is_not_offered_is_refused_and_never_answered_otherwise(client: bigquery.Client) -> None:
    assert [e for e in NOT_OFFERED if not str(answer(client, e)).startswith("refused")] == []


def test_a_refusal_says_what_was_asked(client: bigquery.Client) -> None:
    with pytest.raises(BadRequest, match="The local cloud has no INSTR from the end"):
        client.query_and_wait("SELECT INSTR('banana', 'an', -1)")
    with pytest.raises(BadRequest, match="Array index 5 is out of bounds"):
        client.query_and_wait("SELECT [1, 2][OFFSET(5)]")
    with pytest.raises(BadRequest, match="A TIMESTAMP has no MONTHs to add: use a DATETIME"):
        client.query_and_wait("SELECT TIMESTAMP_ADD(TIMESTAMP '2020-01-01', INTERVAL 1 MONTH)")


def test_what_still_differs_is_what_the_docs_say(client: bigquery.Client) -> None:
    """Whoever mends one moves its line to the documented answers."""
    assert [e for e, _, ours in OTHERWISE if not same(answer(client, e), ours)] == []


def test_of_many_rows_each_gets_its_answer(client: bigquery.Client) -> None:
    """By columns, with NULLs: macros see types when a statement is bound, and values row by row."""
    rows = client.query_and_wait(
        "SELECT CAST(x AS INT64) AS whole, CAST(x AS STRING) AS text, SAFE_CAST(t AS INT64) AS number,"
        " SUBSTR(t, p, 2) AS part, a[OFFSET(p)] AS element, TO_JSON_STRING(STRUCT(x, t)) AS json"
        " FROM (SELECT 0.5 AS x, '12' AS t, 0 AS p, [7, 8] AS a UNION ALL SELECT NULL, '1.5', 1, [7, 8]"
        " UNION ALL SELECT 2.0, NULL, 1, NULL) ORDER BY x"
    )
    assert [tuple(row) for row in rows] == [
        (None, None, None, "1.", 8, '{"x":null,"t":"1.5"}'),
        (1, "0.5", 12, "12", 7, '{"x":0.5,"t":"12"}'),
        (2, "2", None, None, None, '{"x":2,"t":null}'),
    ]


def test_numbers_of_json_are_written_short_and_texts_that_look_like_them_stay(client: bigquery.Client) -> None:
    """In one column: rows that take the quick way, and those whose texts need a look."""
    rows = client.query_and_wait(
        "SELECT TO_JSON_STRING(STRUCT(s, x)) AS v FROM (SELECT 'a1.0,b' AS s, 2.0 AS x UNION ALL SELECT 'plain', 3.0"
        " UNION ALL SELECT 'NaN', 7.0 UNION ALL SELECT '\"1.0,', CAST('inf' AS FLOAT64) UNION ALL SELECT NULL, 0.5)"
        " ORDER BY x"
    )
    assert [row["v"] for row in rows] == [
        '{"s":null,"x":0.5}',
        '{"s":"a1.0,b","x":2}',
        '{"s":"plain","x":3}',
        '{"s":"NaN","x":7}',
        '{"s":"\\"1.0,","x":"Infinity"}',
    ]


def test_fields_keep_their_names_beside_a_table(client: bigquery.Client) -> None:
    rows = client.query_and_wait(
        "SELECT f.n AS n, f.v AS v FROM (SELECT 1.5 AS x), UNNEST([STRUCT('a' AS n, CAST(x AS STRING) AS v),"
        " STRUCT('b' AS n, CAST(x + 0.5 AS STRING) AS v)]) AS f ORDER BY n"
    )
    assert [tuple(row) for row in rows] == [("a", "1.5"), ("b", "2")]
