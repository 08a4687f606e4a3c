// Opens what `xmem report` wrote in the programs it is for, in Chromium: Perfetto's user interface with its trace
// processor, speedscope, and Chromium itself for pictures. Prints one line for each check; exits with 1 if one fails.
//
// node browser.mjs CHROMIUM FILES PERFETTO
// FILES has what `cargo xtask test-views` writes, and facts.json; PERFETTO is the folder of the user interface.

import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { chromium } from 'playwright-core'

const [executablePath, files, perfetto] = process.argv.slice(2)
const speedscope = dirname(createRequire(import.meta.url).resolve('speedscope/dist/release/index.html'))
const facts = JSON.parse(readFileSync(join(files, 'facts.json'), 'utf8'))
const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
}
let failed = 0

function check(what, found, expected) {
  const fine = String(found) === String(expected)
  console.log(`${fine ? 'ok' : 'FAILED'}: ${what}${fine ? '' : `: ${found}, not ${expected}`}`)
  if (!fine) failed += 1
}

/// Serves folders on this machine.
function serve(folders) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname)
    for (const [prefix, folder] of Object.entries(folders)) {
      const file = path.startsWith(prefix) && join(folder, path.slice(prefix.length) || 'index.html')
      if (file && statSync(file, { throwIfNoEntry: false })?.isFile()) {
        response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' })
        createReadStream(file).pipe(response)
        return
      }
    }
    response.writeHead(404).end()
  })
  return new Promise(done => server.listen(0, '127.0.0.1', () => done(server)))
}

async function inPerfetto(browser, base) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
  await page.goto(`${base}/perfetto/index.html#!/?url=${encodeURIComponent(`${base}/files/run.pftrace`)}`)
  await page.waitForFunction(() => globalThis.app?.trace?.engine, null, { timeout: 40000 })
  const query = sql =>
    page.evaluate(async sql => {
      const result = await globalThis.app.trace.engine.query(sql)
      return result.firstRow({ value: 'str' }).value
    }, sql)
  const highest = name =>
    query(`select cast(cast(max(value) as int) as text) as value from counter
           join counter_track on counter.track_id = counter_track.id where name = '${name}'`)
  for (const name of ['allocated', 'requested', 'reserved']) {
    check(`Perfetto: highest ${name} bytes`, await highest(name), facts[name])
  }
  check(
    'Perfetto: the counters are in bytes',
    await query(`select group_concat(distinct unit) as value from counter_track`),
    'bytes',
  )
  const slices = name =>
    query(`select cast(count(*) as text) as value from slice
           join track on slice.track_id = track.id where track.name glob '${name}'`)
  check('Perfetto: operators', await slices('Operators*'), facts.operators)
  check('Perfetto: iterations', await slices('Iterations'), facts.iterations)
  check(
    'Perfetto: slices without an end',
    await query(`select cast(count(*) as text) as value from slice where dur < 0`),
    0,
  )
  check(
    'Perfetto: errors while reading',
    await query(`select cast(coalesce(sum(value), 0) as text) as value from stats
                 where severity = 'error' or severity = 'data_loss'`),
    0,
  )
  await page.waitForTimeout(1000)
  await page.screenshot({ path: join(files, 'perfetto.png') })
  await page.close()
}

async function inSpeedscope(browser, base) {
  for (const [file, title] of [
    ['run.speedscope.json', 'memory at the peak, by stack (1/4)'],
    ['run.folded', 'run.folded'],
  ]) {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    const errors = []
    page.on('pageerror', error => errors.push(String(error)))
    await page.goto(`${base}/speedscope/index.html#profileURL=${encodeURIComponent(`${base}/files/${file}`)}`)
    await page.getByText('Left Heavy').waitFor({ timeout: 20000 })
    await page.waitForTimeout(500)
    check(`speedscope: errors with ${file}`, errors.join('; '), '')
    const text = await page.evaluate(() => document.body.innerText)
    check(`speedscope: ${file} is shown`, text.includes(title) ? title : text, title)
    await page.screenshot({ path: join(files, `${file}.png`) })
    await page.close()
  }
}

async function pictures(browser, base) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1000, height: 1000 } })
    await page.goto(`${base}/files/run.svg`)
    const [root, paper, scripts] = await page.evaluate(() => [
      document.documentElement.nodeName,
      getComputedStyle(document.querySelector('.paper')).fill,
      document.scripts?.length ?? 0,
    ])
    check(`picture, ${colorScheme}: a document`, root, 'svg')
    check(
      `picture, ${colorScheme}: background`,
      paper,
      colorScheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(13, 17, 23)',
    )
    check(`picture, ${colorScheme}: scripts`, scripts, 0)
    const outside = await page.evaluate(() => {
      const whole = document.documentElement.getBoundingClientRect()
      const texts = [...document.querySelectorAll('text')]
      return texts.filter(text => {
        const box = text.getBoundingClientRect()
        return box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom
      }).length
    })
    check(`picture, ${colorScheme}: texts that leave it`, outside, 0)
    await page.screenshot({ path: join(files, `${colorScheme}.png`) })
    await page.close()
  }
}

const server = await serve({ '/files/': files, '/perfetto/': perfetto, '/speedscope/': speedscope })
const browser = await chromium.launch({
  executablePath,
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
})
const base = `http://127.0.0.1:${server.address().port}`
try {
  await inPerfetto(browser, base)
  await inSpeedscope(browser, base)
  await pictures(browser, base)
} finally {
  await browser.close()
  server.close()
}
process.exitCode = failed === 0 ? 0 : 1
