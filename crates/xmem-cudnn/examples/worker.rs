//! A worker on its own: `worker PATH/libcudnn.so.9`, then the properties of a device and questions on
//! standard input, one line each. For tests with a real library, and for new tables.

use std::error::Error;
use std::io;

fn main() -> Result<(), Box<dyn Error>> {
    let library = std::env::args_os().nth(1).ok_or("give the path of libcudnn.so.9")?;
    xmem_cudnn::serve(library.as_ref(), io::stdin().lock(), io::stdout().lock())
}
