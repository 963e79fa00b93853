// Stands in the environment of each function: makes JavaScript values of SQL's, calls the function, and back.
// In: rows as JSON. Out: {"values": […]} or {"error": "…"} as JSON, once promises are settled.
(function () {
  "use strict";
  const fractions = new WeakMap(); // microseconds of a TIMESTAMP, which a Date has not
  const special = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity, "-0": -0 };
  const { parse, stringify } = JSON;
  const wellFormed = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  let called, types, answer, outcome;

  class NotCoerced extends Error {}

  function timestampOf(microseconds) {
    const whole = BigInt(microseconds);
    const fraction = ((whole % 1000n) + 1000n) % 1000n;
    const date = new Date(Number((whole - fraction) / 1000n));
    if (whole % 1000000n !== 0n) {
      const get = () => {
        throw new NotCoerced("The local cloud has no field microsecond of a TIMESTAMP with a fraction of a second");
      };
      Object.defineProperty(date, "microsecond", { get });
    } else {
      Object.defineProperty(date, "microsecond", { value: 0, writable: true, configurable: true });
    }
    if (fraction !== 0n) fractions.set(date, true);
    return date;
  }

  function taken(value, type) {
    if (value === null) return null;
    switch (type.kind) {
      case "FLOAT64": return typeof value === "string" ? special[value] : value;
      case "DATE": return new Date(value);
      case "TIMESTAMP": return timestampOf(value);
      case "JSON": return parse(value);
      case "ARRAY": return value.map((each) => taken(each, type.element));
      case "STRUCT": {
        const made = {};
        type.fields.forEach((field, place) => { made[field.name] = taken(value[place], field.type); });
        return made;
      }
      default: return value;
    }
  }

  function notCoerced(value, type) {
    let shown;
    try { shown = typeof value === "object" ? stringify(value) : String(value); } catch { shown = typeof value; }
    throw new NotCoerced(`Failed to coerce output value ${typeof value === "string" ? `"${value}"` : shown} to type ${type.name}`);
  }

  function numberGiven(value, type) {
    if (typeof value !== "number") return notCoerced(value, type);
    return Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? "-0" : String(value);
  }

  function integerGiven(value, type) {
    if (typeof value === "number" && Number.isInteger(value)) return String(BigInt(value));
    return typeof value === "string" && /^[+-]?[0-9]+$/.test(value) ? value : notCoerced(value, type);
  }

  function textGiven(value, type) {
    const text = String(value);
    return text.isWellFormed() ? text : notCoerced(text.toWellFormed(), type);
  }

  function momentGiven(value, type) {
    if (!(value instanceof Date) || Number.isNaN(value.getTime())) return notCoerced(value, type);
    if (type.kind === "TIMESTAMP" && fractions.has(value)) {
      throw new NotCoerced("The local cloud has no return of a TIMESTAMP that a function was given with microseconds");
    }
    return value.getTime();
  }

  function jsonGiven(value, type) {
    const text = stringify(value);
    return text === undefined ? notCoerced(value, type) : text;
  }

  function fieldsGiven(value, type) {
    if (typeof value !== "object" || Array.isArray(value) || value instanceof Date) return notCoerced(value, type);
    return type.fields.map((field) => given(value[field.name], field.type));
  }

  const givers = {
    INT64: integerGiven,
    FLOAT64: numberGiven,
    STRING: textGiven,
    DATE: momentGiven,
    TIMESTAMP: momentGiven,
    JSON: jsonGiven,
    STRUCT: fieldsGiven,
    BOOL: (value, type) => (typeof value === "boolean" ? value : notCoerced(value, type)),
    BYTES: (value, type) => (typeof value === "string" && wellFormed.test(value) ? value : notCoerced(value, type)),
    NUMERIC: (value, type) =>
      Number.isFinite(value) || typeof value === "string" ? value : notCoerced(value, type),
    ARRAY: (value, type) =>
      Array.isArray(value) ? value.map((each) => given(each, type.element)) : notCoerced(value, type),
  };

  function given(value, type) {
    return value === null || value === undefined ? null : givers[type.kind](value, type);
  }

  function said(error) {
    let text;
    try { text = String(error); } catch { text = "an error without a text"; }
    if (error instanceof NotCoerced) return { text: error.message };
    const stack = error instanceof Error && typeof error.stack === "string" ? error.stack : "";
    const found = /eval at .*?, <anonymous>:(\d+):(\d+)\)/.exec(stack);
    return found ? { text, line: Number(found[1]) - 2, column: Number(found[2]) } : { text };
  }

  function keep(place, value) {
    try { outcome.values[place] = given(value, answer); } catch (error) { fail(error); }
    outcome.missing -= 1;
  }

  function fail(error) {
    if (!outcome.error) outcome.error = said(error);
  }

  const functions = {
    define(names, body, described) {
      ({ parameters: types, answer } = parse(described));
      // The body has lines of its own: two stand before it.
      try { called = new Function(...parse(names), body); } catch (error) { return stringify(said(error)); }
      return "null";
    },
    call(rows) {
      const listed = parse(rows);
      outcome = { values: new Array(listed.length), missing: listed.length };
      listed.every((row, place) => {
        try {
          const value = called(...types.map((type, each) => taken(row[each], type)));
          if (value instanceof Promise) value.then((settled) => keep(place, settled), fail);
          else keep(place, value);
        } catch (error) { fail(error); }
        return !outcome.error;
      });
      return outcome.missing && !outcome.error ? "" : functions.collect(); // promises settle once this has returned
    },
    collect() {
      if (!outcome.error && outcome.missing) outcome.error = { text: "a Promise is never settled" };
      return stringify(outcome.error ? { error: outcome.error } : { values: outcome.values });
    },
  };
  // The engine's own: BigQuery's functions have no timers.
  globalThis.setTimeout = globalThis.clearTimeout = globalThis.__timer_manager = undefined;
  Object.defineProperty(globalThis, "__localcloud", { value: Object.freeze(functions) });
})();
