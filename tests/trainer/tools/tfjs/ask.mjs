// `node ask.mjs FOLDER`: as an app asks a converted model. In: instances, a JSON list, on standard input. Out: answers.
import fs from "node:fs";
import path from "node:path";
import * as tf from "@tensorflow/tfjs";

const folder = process.argv[2];
const file = (name) => fs.readFileSync(path.join(folder, name));
const vocabularyPath = path.join(folder, "vocabulary.json");
const { codes, missing, other } = fs.existsSync(vocabularyPath) ? JSON.parse(file("vocabulary.json")) : { codes: {} };

// What `tf.loadGraphModel("https://…/model.json")` does in a browser.
async function load() {
  const { weightsManifest, ...artifacts } = JSON.parse(file("model.json"));
  const weights = Buffer.concat(weightsManifest.flatMap((group) => group.paths).map(file));
  return tf.loadGraphModel(
    tf.io.fromMemory({
      ...artifacts,
      weightSpecs: weightsManifest.flatMap((group) => group.weights),
      weightData: new Uint8Array(weights).buffer,
    }),
  );
}

// One value as the model takes it: the id of a text, NaN for a number that is missing.
function encode(name, value) {
  if (name in codes) return value === null ? missing : (codes[name][value] ?? other);
  return value ?? NaN;
}

// A feature's tensor of shape [1, …]; a list is cut, and filled up at the end.
function tensor({ name, dtype, shape }, value) {
  const rest = shape.slice(1);
  const values = rest.length === 1 ? [...value, ...Array(rest[0]).fill(null)].slice(0, rest[0]) : [value].flat(Infinity);
  return tf.tensor(values.map((one) => encode(name, one)), [1, ...rest], dtype);
}

await tf.setBackend("cpu");
const model = await load();
const answers = [];
for (const instance of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const inputs = Object.fromEntries(model.inputs.map((input) => [input.name, tensor(input, instance[input.name])]));
  const outputs = await model.predictAsync(inputs);
  answers.push(Object.fromEntries(Object.entries(outputs).map(([name, output]) => [name, output.arraySync()[0]])));
}
console.log(JSON.stringify(answers));
