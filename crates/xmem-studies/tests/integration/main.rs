//! What papers found, on recorded networks, and laws of one. One program, so that it is linked once.

mod chainer;
mod law;
mod offloading;
mod offloading_today;
mod planning;
