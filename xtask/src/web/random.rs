//! A trace of random blocks: sizes, lifetimes, operators and times that do not repeat.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

/// The operators that allocate.
const OPERATORS: u64 = 200;

/// A trace with `blocks` allocations of 512 B to 1 MiB, each freed after up to 4096 others. The same at each call.
pub(super) fn trace(blocks: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut text = String::from("{\"traceEvents\":[\n");
    let mut live: BinaryHeap<Reverse<(usize, u64, u64)>> = BinaryHeap::new();
    let (mut time, mut next) = (1, 1 << 20);
    for block in 0..blocks {
        let duration = 3 + random.below(6);
        let op = random.below(OPERATORS);
        let _ = writeln!(
            text,
            "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op{op}\",\"pid\":1,\"tid\":1,\"ts\":{time},\
             \"dur\":{duration},\"args\":{{}}}},"
        );
        let size = random.power(9, 20);
        memory(&mut text, time + 1, random.below(1000), size as i64, next);
        live.push(Reverse((block + random.power(1, 12) as usize, next, size)));
        next += size + 64;
        time += duration + 2;
        while let Some(&Reverse((until, addr, size))) = live.peek()
            && until <= block
        {
            live.pop();
            memory(&mut text, time, random.below(1000), -(size as i64), addr);
            time += 1;
        }
    }
    text.truncate(text.trim_end_matches([',', '\n']).len());
    text += "\n]}";
    text.into_bytes()
}

/// An allocation, or a free with a negative size, at a time in microseconds and thousandths.
fn memory(text: &mut String, time: u64, thousandths: u64, bytes: i64, addr: u64) {
    let _ = writeln!(
        text,
        "{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\
         \"ts\":{time}.{thousandths:03},\"args\":{{\"Bytes\":{bytes},\"Addr\":{addr},\"Device Type\":0,\"Device Id\":-1}}}},"
    );
}

/// Numbers by xorshift64 (Marsaglia, Journal of Statistical Software 8(14), 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number from 2^low up to 2^high, all powers of two as likely.
    fn power(&mut self, low: u64, high: u64) -> u64 {
        let least = 1 << (low + self.below(high - low));
        least + self.below(least)
    }
}
