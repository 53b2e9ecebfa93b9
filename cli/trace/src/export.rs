//! Exports a trace as a Parquet file: one row per event, in order, for DuckDB, Polars, Spark and others.

use crate::order::{Ordered, Step, What};
use crate::reader::Reader;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::{Error, Result};
use hakmem_lab::{failed, interrupt, whole_file};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

const ROWS_A_GROUP: usize = 1 << 20;

// `age_ns` and `old_*` describe the block that a free or a realloc takes.
const SCHEMA: &str = "
message events {
    REQUIRED INT32 process;
    REQUIRED INT32 thread;
    REQUIRED INT64 time_ns;
    REQUIRED BYTE_ARRAY call (STRING);
    REQUIRED INT64 address;
    REQUIRED INT64 size;
    REQUIRED INT32 alignment;
    REQUIRED INT32 stack;
    OPTIONAL INT64 old_address;
    OPTIONAL INT64 old_size;
    OPTIONAL INT32 old_thread;
    OPTIONAL INT64 age_ns;
}";

/// A batch of rows, column by column.
#[derive(Default)]
struct Rows {
    process: Vec<i32>,
    thread: Vec<i32>,
    time: Vec<i64>,
    call: Vec<ByteArray>,
    address: Vec<i64>,
    size: Vec<i64>,
    alignment: Vec<i32>,
    stack: Vec<i32>,
    has_old: Vec<i16>,
    old_address: Vec<i64>,
    old_size: Vec<i64>,
    old_thread: Vec<i32>,
    age: Vec<i64>,
}

/// Writes the events of all processes to a file. Returns the number of rows.
pub fn to_parquet(reader: &Reader, path: &Path) -> Result<u64> {
    whole_file::replace_by(path, |file| write_rows(reader, path, file))
}

fn write_rows(reader: &Reader, path: &Path, file: File) -> Result<u64> {
    let cannot = |error| unwritten(path, error);
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(cannot)?);
    let level = ZstdLevel::try_new(3).map_err(cannot)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .build();
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(cannot)?;
    let mut rows = Rows::default();
    let mut count = 0;
    let units = 1e9 / reader.units_per_second();
    for process in &reader.processes {
        let mut ordered = Ordered::new(reader, process.process)?;
        while let Some(step) = ordered.step()? {
            let time = step.time.saturating_sub(reader.beginning.start) as f64 * units;
            rows.push(
                process.process,
                ordered.threads[step.thread],
                time,
                units,
                &step,
            );
            count += 1;
            if interrupt::requested() {
                return Err(failed!("stopped; {} is not written", path.shown()));
            }
            if rows.time.len() == ROWS_A_GROUP {
                rows.write(&mut writer).map_err(cannot)?;
            }
        }
    }
    rows.write(&mut writer).map_err(cannot)?;
    writer.close().map_err(cannot)?;
    Ok(count)
}

fn unwritten(path: &Path, error: ParquetError) -> Error {
    if let ParquetError::External(inner) = &error
        && let Some(inner) = inner.downcast_ref::<io::Error>()
    {
        return whole_file::unwritten(path, inner);
    }
    failed!("cannot write {}: {error}", path.shown())
}

fn name(what: What) -> &'static str {
    match what {
        What::Malloc => "malloc",
        What::Calloc => "calloc",
        What::Aligned { .. } => "aligned",
        What::Free => "free",
        What::Realloc => "realloc",
        What::Failed => "failed",
        What::ForeignFree => "foreign_free",
    }
}

impl Rows {
    fn push(&mut self, process: u32, thread: u32, time: f64, units: f64, step: &Step) {
        self.process.push(process as i32);
        self.thread.push(thread as i32);
        self.time.push(time as i64);
        self.call.push(ByteArray::from(name(step.what)));
        self.address.push(step.address as i64);
        self.size.push(step.size as i64);
        self.alignment.push(match step.what {
            What::Aligned { log2 } => 1 << log2.min(30),
            _ => 0,
        });
        self.stack.push(step.stack as i32);
        let has_old = matches!(step.what, What::Free | What::Realloc);
        self.has_old.push(has_old.into());
        if has_old {
            self.old_address.push(step.before.address as i64);
            self.old_size.push(step.before.size as i64);
            self.old_thread.push(step.before.thread as i32);
            self.age
                .push((step.time.saturating_sub(step.before.time) as f64 * units) as i64);
        }
    }

    fn write(&mut self, writer: &mut SerializedFileWriter<File>) -> parquet::errors::Result<()> {
        if self.time.is_empty() {
            return Ok(());
        }
        let mut group = writer.next_row_group()?;
        let old = Some(&self.has_old[..]);
        write_column::<Int32Type>(&mut group, &self.process, None)?;
        write_column::<Int32Type>(&mut group, &self.thread, None)?;
        write_column::<Int64Type>(&mut group, &self.time, None)?;
        write_column::<ByteArrayType>(&mut group, &self.call, None)?;
        write_column::<Int64Type>(&mut group, &self.address, None)?;
        write_column::<Int64Type>(&mut group, &self.size, None)?;
        write_column::<Int32Type>(&mut group, &self.alignment, None)?;
        write_column::<Int32Type>(&mut group, &self.stack, None)?;
        write_column::<Int64Type>(&mut group, &self.old_address, old)?;
        write_column::<Int64Type>(&mut group, &self.old_size, old)?;
        write_column::<Int32Type>(&mut group, &self.old_thread, old)?;
        write_column::<Int64Type>(&mut group, &self.age, old)?;
        group.close()?;
        *self = Rows::default();
        Ok(())
    }
}

fn write_column<T: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<File>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> parquet::errors::Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, present, None)?;
        column.close()?;
    }
    Ok(())
}
