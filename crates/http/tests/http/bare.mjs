// Another implementation of BARE: reads with docs/schema/mainstay.bare what Mainstay writes, compares it with the JSON of the same, and
// writes what Mainstay is to read. Its questions and answers are JSON, on standard input and output.

import fs from "node:fs"
import path from "node:path"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const { schema, folder, packages, compare, write } = JSON.parse(fs.readFileSync(0, "utf8"))
// As a file in the folder of packages would name them.
const resolve = createRequire(path.join(packages, "packages.cjs")).resolve
const load = (file) => import(pathToFileURL(file).href)

const bare = await load(resolve("@bare-ts/lib"))
const { transform, Config } = await load(resolve("@bare-ts/tools"))
const options = Config({ schema, generator: "js", pedantic: true })
const compiled = transform(fs.readFileSync(schema, "utf8"), options)
const library = pathToFileURL(resolve("@bare-ts/lib")).href
const file = path.join(folder, "mainstay.mjs")
fs.writeFileSync(file, compiled.replace('"@bare-ts/lib"', JSON.stringify(library)))
const types = await load(file)

const config = bare.Config({})

function read(type, bytes) {
  const cursor = new bare.ByteCursor(bytes, config)
  const value = types[`read${type}`](cursor)
  if (cursor.offset !== bytes.length) throw new Error(`${bytes.length - cursor.offset} bytes are left`)
  return value
}

function written(type, value) {
  const cursor = new bare.ByteCursor(new Uint8Array(1 << 16), config)
  types[`write${type}`](cursor, value)
  return Buffer.from(cursor.bytes.subarray(0, cursor.offset)).toString("hex")
}

const words = (name) => name.replaceAll(/[-_]/g, "").toLowerCase()

const isNothing = (value) =>
  value === null || value === undefined || value === false || value === 0n || value === "" || value === "null" ||
  (Array.isArray(value) && value.length === 0) || (value instanceof Map && value.size === 0) ||
  (Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isNothing))

// What came to JSON later than this version of the schema.
const LATER = ["SessionView.language"]

// Where what was read differs from what JSON says.
function differences(value, json, at) {
  const differs = (is) => (is ? [] : [`${at}: ${String(value)} is not ${JSON.stringify(json)}`])
  if (json === undefined || json === null) return differs(isNothing(value))
  if (typeof value === "bigint") {
    return differs(typeof json === "string" ? BigInt(Date.parse(json)) === value / 1000n : BigInt(json) === value)
  }
  if (value instanceof ArrayBuffer) {
    return differs(Buffer.from(value).toString("hex") === json.replaceAll("-", ""))
  }
  if (typeof value === "string") {
    // What is JSON also there; else a text, or one of several names.
    if (typeof json !== "string") return differences(JSON.parse(value), json, at)
    return differs(value === json || value === JSON.stringify(json) || words(value) === words(json))
  }
  if (typeof value !== "object" || value === null) return differs(value === json)
  if (Array.isArray(value)) {
    if (value.length !== json.length) return differs(false)
    return value.flatMap((item, index) => differences(item, json[index], `${at}[${index}]`))
  }
  if ("tag" in value) {
    const name = value.tag.slice(0, 1).toLowerCase() + value.tag.slice(1)
    if (typeof json === "string" && !("val" in value && typeof value.val === "string")) return differs(name === json)
    return differences(value.val, json[name] ?? json, `${at}<${value.tag}>`)
  }
  const fields = value instanceof Map ? Object.fromEntries(value) : value
  const names = new Set([...Object.keys(fields), ...Object.keys(json)])
  return [...names].filter((name) => !LATER.includes(`${at}.${name}`)).flatMap((name) =>
    name in fields ? differences(fields[name], json[name], `${at}.${name}`) : [`${at}.${name} is not there`])
}

const found = compare.flatMap(({ type, bare: hex, json }) => {
  try {
    // Not as a Buffer, whose slices are no copies.
    const value = read(type, Uint8Array.from(Buffer.from(hex, "hex")))
    const again = written(type, value) === hex ? [] : [`${type}: written again it is other bytes`]
    return [...differences(value, json, type), ...again]
  } catch (error) {
    return [`${type}: ${error}`]
  }
})
console.log(JSON.stringify({ found, written: write.map(({ type, value }) => written(type, value)) }))
