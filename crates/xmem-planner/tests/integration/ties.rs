//! The cases of `ties.txt`.

use xmem_planner::{BlockList, Limits, PlannedBlock, Planner, Refused, plan};
use xmem_types::Bytes;

#[test]
fn ties_are_broken_as_documented() {
    let cases = include_str!("ties.txt").split("\n\n").skip(1);
    assert!(cases.clone().count() > 10, "the cases are read");
    for case in cases {
        let (title, lines) = case.split_once('\n').expect("a title");
        let planner: Planner = title.split_once(": ").expect("a planner").0.parse().expect(title);
        let (mut blocks, mut expected) = (Vec::new(), Vec::new());
        for line in lines.lines() {
            let (block, offset) = line.split_once(" -> ").expect(line);
            let numbers: Vec<u32> = block.split(' ').map(|n| n.parse().expect(line)).collect();
            let &[size, start, end, ref operator @ ..] = &numbers[..] else { panic!("{line}") };
            let size = Bytes(u64::from(size));
            blocks.push(PlannedBlock { size, start, end, operator: operator.first().copied() });
            expected.push(Bytes(offset.parse().expect(line)));
        }
        let list = BlockList::new(blocks).expect(title);
        let planned = plan(&list, planner, &Limits::default()).expect(title);
        assert_eq!(planned.plan.offsets(), expected, "{title}");
    }
}

#[test]
fn breadth_without_operators_is_refused() {
    let block = PlannedBlock { size: Bytes(1), start: 0, end: 1, operator: None };
    let planned = |blocks: Vec<PlannedBlock>| {
        let list = BlockList::new(blocks).expect("a list");
        plan(&list, Planner::GreedyByBreadth, &Limits::default()).map(|planned| planned.plan.peak())
    };
    assert_eq!(
        planned(vec![block]),
        Err(Refused::NoOperators { planner: Planner::GreedyByBreadth })
    );
    assert_eq!(planned(vec![PlannedBlock { operator: Some(0), ..block }]), Ok(Bytes(1)));
    assert_eq!(planned(Vec::new()), Ok(Bytes(0)));
}
