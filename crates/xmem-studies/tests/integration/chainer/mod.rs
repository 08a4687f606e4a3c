//! What Sekiyama et al. found with Chainer, in Chainer's setting: CuPy's pool, activations that do not work in place, workspaces
//! of convolutions up to 8 MiB or none, batches of 32, and savings of the memory of the whole job.

mod pool;

use pool::{Pool, reserved};
use xmem::Bytes;
use xmem_studies::planner::{BlockList, Limits, PlannedBlock, Planner, plan};

/// The networks, with the tables of training and of inference, and what outlives an iteration of each.
const ALEXNET: Network = Network {
    name: "alexnet",
    tables: [include_str!("alexnet_training.csv"), include_str!("alexnet_inference.csv")],
    outside: [751_429_120, 254_574_592],
};
const GOOGLENET: Network = Network {
    name: "googlenet",
    tables: [include_str!("googlenet_training.csv"), include_str!("googlenet_inference.csv")],
    outside: [174_351_872, 62_130_176],
};
const RESNET: Network = Network {
    name: "resnet50",
    tables: [include_str!("resnet50_training.csv"), include_str!("resnet50_inference.csv")],
    outside: [325_155_840, 112_645_632],
};
const INCEPTION_RESNET: Network = Network {
    name: "inception_resnet_v2",
    tables: [
        include_str!("inception_resnet_v2_training.csv"),
        include_str!("inception_resnet_v2_inference.csv"),
    ],
    outside: [689_115_136, 234_571_264],
};

/// Chainer's limit for workspaces, and none.
const WORKSPACES: [Option<u64>; 2] = [Some(8 << 20), None];

#[derive(Clone, Copy, Debug)]
struct Network {
    name: &'static str,
    tables: [&'static str; 2],
    outside: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Training,
    Inference,
}

/// What a job takes besides what outlives its iterations.
#[derive(Clone, Copy, Debug)]
struct Need {
    without_reuse: u64,
    pool: u64,
    planned: u64,
    outside: u64,
}

impl Need {
    fn of(network: Network, of: Use, pool: Pool, workspaces: Option<u64>) -> Self {
        let blocks = blocks(network, of, workspaces);
        let list = BlockList::new(blocks.clone()).expect("a list");
        let planned = plan(&list, Planner::BestFit, &Limits::default()).expect("a plan");
        Self {
            without_reuse: blocks.iter().map(|block| block.size.get()).sum(),
            pool: reserved(pool, &blocks),
            planned: planned.plan.peak().get(),
            outside: network.outside[of as usize],
        }
    }

    /// The part of the memory of the job that a plan saves, in percent.
    fn saving(self) -> f64 {
        100.0 * (self.pool - self.planned) as f64 / (self.pool + self.outside) as f64
    }
}

fn blocks(network: Network, of: Use, workspaces: Option<u64>) -> Vec<PlannedBlock> {
    let block = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, start, end, size, used] = fields[..] else { panic!("{line}") };
        let tick = |text: &str| text.parse().expect("a tick");
        let size: u64 = size.parse().expect("bytes");
        let size = if used == "workspace" { size.min(workspaces.unwrap_or(0)) } else { size };
        PlannedBlock { size: Bytes(size), start: tick(start), end: tick(end), operator: None }
    };
    let blocks = network.tables[of as usize].lines().skip(1).map(block);
    blocks.filter(|block| block.size > Bytes::ZERO).collect()
}

fn savings(networks: [Network; 4], of: Use, pool: Pool, workspaces: Option<u64>) -> [f64; 4] {
    networks.map(|network| Need::of(network, of, pool, workspaces).saving())
}

#[test]
fn sekiyama_without_reuse_more_than_the_pool_and_the_pool_not_less_than_a_plan() {
    for network in [ALEXNET, RESNET, GOOGLENET, INCEPTION_RESNET] {
        for of in [Use::Training, Use::Inference] {
            for pool in [Pool::ExactSizes, Pool::BestFit] {
                for workspaces in WORKSPACES {
                    let need = Need::of(network, of, pool, workspaces);
                    let Need { without_reuse, pool, planned, .. } = need;
                    assert!(without_reuse > pool && pool >= planned, "{} {need:?}", network.name);
                }
            }
        }
    }
}

/// At batch 32: 1.21 GB of 1.50 GB without reuse.
#[test]
fn sekiyama_the_pool_takes_four_fifths_of_alexnet_without_reuse() {
    let need = Need::of(ALEXNET, Use::Training, Pool::BestFit, Some(8 << 20));
    let share = (need.pool + need.outside) as f64 / (need.without_reuse + need.outside) as f64;
    assert!((0.76..0.86).contains(&share), "{share}");
}

#[test]
fn sekiyama_in_inference_alexnet_gains_next_to_nothing_and_the_others_more() {
    let need = Need::of(ALEXNET, Use::Inference, Pool::BestFit, None);
    assert_eq!(need.pool, need.planned, "without workspaces, the pool of AlexNet is optimal");
    for pool in [Pool::ExactSizes, Pool::BestFit] {
        for workspaces in WORKSPACES {
            let networks = [ALEXNET, RESNET, GOOGLENET, INCEPTION_RESNET];
            let [alexnet, others @ ..] = savings(networks, Use::Inference, pool, workspaces);
            assert!(alexnet < 5.5, "{pool:?} {workspaces:?}: {alexnet}");
            assert!(others.iter().all(|&other| other > alexnet), "{alexnet} {others:?}");
        }
    }
    let networks = [ALEXNET, RESNET, GOOGLENET, INCEPTION_RESNET];
    let chainer = savings(networks, Use::Inference, Pool::BestFit, Some(8 << 20));
    // 0, 10.0 and 12.6 in the paper.
    for (saving, expected) in chainer.into_iter().zip([1.5, 8.2, 7.9]) {
        assert!((saving - expected).abs() < 0.1, "{chainer:?}");
    }
}

/// Networks with branches gain more than AlexNet and ResNet-50, where free blocks serve requests of their size only.
#[test]
fn sekiyama_in_training_irregular_networks_gain_most() {
    for workspaces in WORKSPACES {
        let networks = [ALEXNET, RESNET, GOOGLENET, INCEPTION_RESNET];
        let [alexnet, resnet, googlenet, inception] =
            savings(networks, Use::Training, Pool::ExactSizes, workspaces);
        assert!(googlenet.min(inception) > 1.3 * alexnet.max(resnet), "{workspaces:?}");
    }
    // A pool that splits and joins leaves less to gain, most of it to GoogLeNet.
    for workspaces in WORKSPACES {
        let networks = [GOOGLENET, ALEXNET, RESNET, INCEPTION_RESNET];
        let [googlenet, others @ ..] = savings(networks, Use::Training, Pool::BestFit, workspaces);
        assert!(others.iter().all(|&other| googlenet > 2.0 * other), "{googlenet} {others:?}");
    }
}
