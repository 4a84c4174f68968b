//! The page of a paper: what was measured, as tables, with the plots beside them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use datafusion::common::Result;
use datafusion::error::DataFusionError;

use crate::output;
use crate::plot::Plot;

/// A page being written.
pub struct Page {
    file: PathBuf,
    text: String,
}

impl Page {
    /// A page with a title, and where and when it was measured.
    pub fn new(folder: &Path, name: &str, title: &str, about: &str) -> Self {
        let commit = output("git", &["rev-parse", "--short", "HEAD"]);
        let date = output("date", &["-u", "+%Y-%m-%d"]);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let text = format!(
            "# {title}\n\n{about}\n\nWritten by `cargo bench --bench figures -- {name}` on {date}, commit {commit}, {cores} \
             cores.\n"
        );
        Self {
            file: folder.join(format!("{name}.md")),
            text,
        }
    }

    /// Adds a plot and its numbers.
    pub fn add(&mut self, name: &str, plot: &Plot) -> Result<()> {
        let folder = self.file.with_extension("");
        std::fs::create_dir_all(&folder)?;
        plot.write(&folder.join(format!("{name}.svg")))
            .map_err(|e| DataFusionError::External(e.to_string().into()))?;
        let place = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut table = format!(
            "\n## {}\n\n![{}]({place}/{name}.svg)\n\n",
            plot.title, plot.title
        );
        let names: Vec<&str> = plot.series.iter().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(table, "| {} | {} |", plot.x, names.join(" | "));
        let _ = writeln!(table, "|---|{}", "---|".repeat(names.len()));
        let rows = plot.series.first().map_or(0, |(_, points)| points.len());
        for row in 0..rows {
            let cells = plot.series.iter().map(|(_, points)| printed(points[row].1));
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(
                table,
                "| {} | {} |",
                plot.series[0].1[row].0,
                cells.join(" | ")
            );
        }
        self.text += &table;
        Ok(())
    }

    /// Adds words.
    pub fn say(&mut self, words: &str) {
        let _ = write!(self.text, "\n{words}\n");
    }

    /// Writes the page.
    pub fn write(self) -> Result<()> {
        std::fs::write(&self.file, self.text)?;
        println!("{}", self.file.display());
        Ok(())
    }
}

/// A number of a table: counts as they are.
fn printed(value: f64) -> String {
    match value.fract() == 0.0 && value >= 2.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.4}"),
    }
}
