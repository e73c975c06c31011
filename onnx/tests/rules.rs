//! Rewrites: what each finds and what it leaves, with ONNX Runtime's outputs, which `make_rule_cases.py` wrote.

use swath_onnx::{Model, RULES, cases};

const CASES: &[u8] = include_bytes!("data/rules.bin");

#[test]
fn results_are_those_of_the_file() {
    let results = cases::run(CASES, |_| true).unwrap();
    let faults: Vec<String> = results
        .iter()
        .filter_map(|(name, result)| result.as_ref().err().map(|error| format!("{name}: {error}")))
        .collect();
    assert!(results.len() > 50 && faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn rules_find_what_they_should_and_no_more() {
    let names = cases::run(CASES, |_| true).unwrap().into_iter().map(|(name, _)| name);
    let (mut faults, mut used) = (Vec::new(), Vec::new());
    for (name, (bytes, _)) in names.zip(cases::models(CASES).unwrap()) {
        let plan = Model::from_owner(bytes).unwrap().plan().to_string();
        let rule = name.split(':').next().unwrap_or_default();
        let (wanted, rule) = rule.strip_prefix("no ").map_or((true, rule), |rule| (false, rule));
        let first = plan.lines().next().unwrap_or_default();
        if first.contains(&format!("{rule} ")) != wanted {
            faults.push(format!("{name}: {first}"));
        }
        if wanted {
            used.push(rule.to_owned());
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(RULES.iter().all(|rule| used.iter().any(|name| name == rule.name)), "{used:?}");
}
