//! Tables of ratios, printed as they come and kept as text.

use std::time::Duration;

/// Rows beyond are listed at the end.
pub const SLOWER: f64 = 1.10;

/// Seconds of a call.
pub struct Row {
    /// "group: name".
    pub name: String,
    pub base: f64,
    pub now: f64,
    /// The ratio of a second measurement.
    pub again: Option<f64>,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.now / self.base
    }

    fn group(&self) -> &str {
        self.name.split(": ").next().unwrap_or_default()
    }
}

pub struct Report {
    text: String,
    base: String,
    threads: usize,
    rows: Vec<Row>,
    slower: Vec<String>,
}

impl Report {
    pub fn new(base: &str, now: &str, isa: Option<&str>) -> Report {
        let mut report = Report {
            text: String::new(),
            base: base.into(),
            threads: 0,
            rows: Vec::new(),
            slower: Vec::new(),
        };
        let isa = isa.map_or(String::new(), |isa| format!(", {isa}"));
        report.line(&format!("{now} beside {base}{isa}"));
        report
    }

    fn line(&mut self, line: &str) {
        println!("{line}");
        self.text += line;
        self.text += "\n";
    }

    pub fn table(&mut self, threads: usize) {
        self.summary();
        self.threads = threads;
        let threads = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        self.line(&format!("\n## {threads}\n"));
        let base = self.base.clone();
        self.line(&format!("| row | {base}, µs | now, µs | ratio |\n|---|---:|---:|---:|"));
    }

    pub fn row(&mut self, row: Row) {
        let (base, now) = (1e6 * row.base, 1e6 * row.now);
        let again = row.again.map_or(String::new(), |ratio| format!(", again {ratio:.2}"));
        let text = format!("| {} | {base:.3} | {now:.3} | {:.3}{again} |", row.name, row.ratio());
        self.line(&text);
        if row.again.is_some() {
            let threads = self.threads;
            let text = format!("{}, T{threads}: {:.2}{again}", row.name, row.ratio());
            self.slower.push(text);
        }
        self.rows.push(row);
    }

    /// The means of the table that ends.
    fn summary(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        let mean = |group: Option<&str>| {
            let rows = rows.iter().filter(|row| group.is_none_or(|group| row.group() == group));
            let logs: Vec<f64> = rows.map(|row| row.ratio().ln()).collect();
            (logs.len(), (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        self.line("\n| group | rows | geometric mean of the ratios |\n|---|---:|---:|");
        let mut groups: Vec<&str> = rows.iter().map(Row::group).collect();
        groups.dedup();
        for group in groups {
            let (count, mean) = mean(Some(group));
            self.line(&format!("| {group} | {count} | {mean:.3} |"));
        }
        let (count, mean) = mean(None);
        self.line(&format!("| all | {count} | {mean:.3} |"));
    }

    pub fn end(&mut self, time: Duration) {
        self.summary();
        let slower = std::mem::take(&mut self.slower);
        self.line(&format!("\nabove {SLOWER:.2}: {} rows", slower.len()));
        for row in slower {
            self.line(&format!("- {row}"));
        }
        self.line(&format!("\nmeasured in {:.1} minutes", time.as_secs_f64() / 60.0));
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}
