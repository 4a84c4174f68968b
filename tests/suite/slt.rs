//! Behaviour seen in SQL is tested in SQL: every file under sql/ with the ending .slt.
//!
//! `SLT_UPDATE=always cargo test --test suite slt` writes what is seen into the files; read the difference then.

use std::path::PathBuf;

use datafusion::prelude::SessionContext;
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer,
    default_validator,
};

use crate::engine::{printed, with_patients};

struct Database(SessionContext);

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = datafusion::error::DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Self::Error> {
        let frame = self.0.sql(sql).await?;
        let columns = frame.schema().fields().len();
        let batches = frame.collect().await?;
        if columns == 0 || batches.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any; columns],
            rows: printed(&batches),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "datafusion-anonymize"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let mut runner = Runner::new(|| async { Ok(Database(with_patients().await)) });
        if std::env::var_os("SLT_UPDATE").is_some() {
            let column_types = default_column_validator;
            runner
                .update_test_file(
                    &file,
                    " ",
                    default_validator,
                    default_normalizer,
                    column_types,
                )
                .await
                .unwrap();
            continue;
        }
        if let Err(error) = runner.run_file_async(&file).await {
            panic!("{}", error.display(true));
        }
    }
}
