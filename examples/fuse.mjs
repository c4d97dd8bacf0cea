// Fuse scores in JavaScript with a model that `harmonrank export MODEL --onnx model.onnx` wrote.
//
//     npm install onnxruntime-web
//     node fuse.mjs model.onnx candidates.json
//
// candidates.json holds a list for each score and context column, by name; nothing is encoded:
//     {"p_buy": [0.02, 0.01], "p_like": [0.2, 0.35], "hour": [21, 21], "age": ["young", "never seen"]}
import { readFile } from "node:fs/promises";
import * as ort from "onnxruntime-web";

const [file, candidates] = process.argv.slice(2);
const session = await ort.InferenceSession.create(file, { logSeverityLevel: 3 });
const columns = JSON.parse(await readFile(candidates, "utf8"));

const tensors = {
  float64: (list) => new ort.Tensor("float64", Float64Array.from(list)),
  float32: (list) => new ort.Tensor("float32", Float32Array.from(list)),
  int64: (list) => new ort.Tensor("int64", BigInt64Array.from(list, BigInt)),
  string: (list) => new ort.Tensor("string", list),
};
const inputs = {};
for (const { name, type } of session.inputMetadata) {
  if (!(name in columns)) throw new Error(`'${name}' is missing from ${candidates}.`);
  const make = tensors[type];
  inputs[name] = make(columns[name]);
}
const outputs = await session.run(inputs);
const answer = Object.entries(outputs).map(([name, tensor]) => [name, [...tensor.data]]);
console.log(JSON.stringify(Object.fromEntries(answer)));
