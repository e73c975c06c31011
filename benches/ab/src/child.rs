//! A program of rows that runs and waits for requests; `rows/main.rs` is its other end.

use crate::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub struct Child {
    process: std::process::Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Child {
    pub fn start(program: &Path, threads: usize, isa: Option<&str>) -> Result<Child, Error> {
        let mut command = Command::new(program);
        command.env("SWATH_THREADS", threads.to_string()).env_remove("SWATH_ISA");
        if let Some(isa) = isa {
            command.env("SWATH_ISA", isa);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, replies) = (process.stdin.take(), process.stdout.take());
        let requests = requests.ok_or("the program has no standard input")?;
        let replies = BufReader::new(replies.ok_or("the program has no standard output")?);
        Ok(Child { process, requests, replies })
    }

    fn reply(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        if self.replies.read_line(&mut line)? == 0 {
            return Err("a program of rows has ended; what it said stands above".into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, request: &str) -> Result<String, Error> {
        writeln!(self.requests, "{request}")?;
        self.requests.flush()?;
        self.reply()
    }

    /// The rows, as "group: name".
    pub fn list(&mut self) -> Result<Vec<String>, Error> {
        let mut rows = Vec::new();
        let mut line = self.ask("list")?;
        while line != "end" {
            rows.push(line.replacen('\t', ": ", 1));
            line = self.reply()?;
        }
        Ok(rows)
    }

    /// Makes a row's operands; roughly the seconds of a call.
    pub fn set_up(&mut self, row: usize) -> Result<f64, Error> {
        Ok(self.ask(&format!("row {row}"))?.parse()?)
    }

    /// The seconds of so many calls.
    pub fn time(&mut self, calls: usize) -> Result<f64, Error> {
        Ok(self.ask(&format!("time {calls}"))?.parse()?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It waits for a request that will not come.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
