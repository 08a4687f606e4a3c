//! What papers found, on recorded networks. One program, so that it is linked once.

mod chainer;
mod offloading;
mod planning;
