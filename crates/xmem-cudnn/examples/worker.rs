//! A worker by itself: `worker PATH/libcudnn.so.9`, then a device's properties and questions, a line
//! each, on standard input. For the tests with a real library, and for drawing tables.

use std::error::Error;
use std::io;

fn main() -> Result<(), Box<dyn Error>> {
    let library = std::env::args_os().nth(1).ok_or("give the path of libcudnn.so.9")?;
    xmem_cudnn::serve(library.as_ref(), io::stdin().lock(), io::stdout().lock())
}
