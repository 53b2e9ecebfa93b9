//! The fields that a walk needs; each is looked up once.

use crate::control::{Control, Field};
use crate::error::Result;

/// One of the library's structs: its size, and the fields that we read, by name.
macro_rules! structs {
    ($($name:ident, $of:literal: $($field:ident)*;)*) => {
        $(
            #[derive(Clone, Debug)]
            pub struct $name {
                #[allow(dead_code, reason = "some lie within others and are not read for themselves")]
                pub size: usize,
                $(pub $field: Field,)*
            }

            impl $name {
                pub fn find(control: &Control) -> Result<$name> {
                    Ok($name {
                        size: control.struct_bytes($of)?,
                        $($field: control.field($of, stringify!($field))?,)*
                    })
                }
            }
        )*
    };
}

structs! {
    List, "hak_list": next;
    Class, "hak_class": bytes blocks units;
    Map, "hak_map": units unit_mask supers super_mask;
    Slab, "hak_slab": base owner bitmap bytes free_blocks fresh units size_class state is_hardened;
    Harden, "hak_harden": sees_all;
    Guard, "hak_guard": base table;
    GuardTable, "hak_guard_table": slots;
    GuardSlot, "hak_guard_slot": state block bytes;
    Super, "hak_super": base mapped_bytes free_units dirty_units purging_units all_link is_mapping huge_units
        mapped_at made_at first slabs;
    Arena, "hak_arena": all super_bytes mapping_bytes dirty_bytes free_bytes retaken_bytes peak_bytes clock shards;
    Shard, "hak_shard": untold;
    Untold, "hak_untold": dirty_bytes free_bytes retaken_bytes;
    Pool, "hak_pool": mapped_bytes chunks chunk_count;
    Chunk, "hak_pool_chunk": start bytes;
    Magazine, "hak_magazine": base places_log2 bottom fence fenced counts;
    Parcel, "hak_parcel": next count blocks;
    Outbox, "hak_outbox": parcel;
    ClassCounts, "hak_class_counts": refills refilled_blocks spills spilled_blocks drawn misses;
    CacheCounts, "hak_cache_counts": sent_parcels sent_blocks adopted_slabs;
    OwnerClass, "hak_owner_class": made_slabs ended_slabs;
    Owner, "hak_owner": tag has_thread state pending inbox loose events opened_parcels classes;
    Cache, "hak_cache": top apart thread_id outboxes owner next magazines counts gaps;
    Registry, "hak_registry": all;
    OsCounts, "hak_os_counts": maps unmaps remaps purges purged_bytes huge_advices refused;
    Timing, "hak_timing": cycles times;
    Samples, "hak_samples": other live peak peak_number dropped_samples taken timed_ns tables;
    SampleTables, "hak_sample_tables": buckets stack_buckets thread_buckets;
    Sums, "hak_sample_sums": samples bytes blocks_256;
    Stack, "hak_sample_stack": next allocated live peak peak_number frame_count frames;
    Sample, "hak_sample": next address bytes every block_bytes time_ns stack thread_id;
    SampleBucket, "hak_sample_bucket": first;
    StackBucket, "hak_sample_stack_bucket": first;
    SampleThread, "hak_sample_thread": next allocated thread_id;
    ThreadBucket, "hak_sample_thread_bucket": first;
    Code, "hak_code": count entries;
    CodeObject, "hak_code_object": start end path path_bytes kind head_hash id_bytes id;
    Functions, "hak_functions": count table;
    FunctionTable, "hak_function_table": entries;
    Function, "hak_function": first_line file_bytes name_bytes text;
    Failures, "hak_failures": count latest;
    Failure, "hak_failure": number date_ns bytes alignment site asked_bytes limit_value limit_use thread_id
        error kind limit place;
    Decisions, "hak_decisions": count running latest;
    Decision, "hak_decision": number date_ns kind verdict option values games difference_ppm low_ppm high_ppm costs;
    Round, "hak_round": processor_ns allocator_ns faults;
}

#[derive(Clone, Debug)]
pub struct Fields {
    pub list: List,
    pub class: Class,
    pub map: Map,
    pub slab: Slab,
    pub harden: Harden,
    pub guard: Guard,
    pub guard_table: GuardTable,
    pub guard_slot: GuardSlot,
    pub superslab: Super,
    pub arena: Arena,
    pub shard: Shard,
    pub untold: Untold,
    pub pool: Pool,
    pub chunk: Chunk,
    pub magazine: Magazine,
    pub parcel: Parcel,
    pub outbox: Outbox,
    pub class_counts: ClassCounts,
    pub cache_counts: CacheCounts,
    pub owner_class: OwnerClass,
    pub owner: Owner,
    pub cache: Cache,
    pub registry: Registry,
    pub os_counts: OsCounts,
    pub unit_log2: u32,
    pub super_log2: u32,
    pub tag_log2: u32,
    pub map_kept: u64,
    pub slab_small: u64,
    pub slab_large: u64,
    pub guard_live: u64,
    pub block_kinds: u64,
    pub block_free: u64,
    pub owner_dead: u64,
}

impl Fields {
    pub fn find(control: &Control) -> Result<Fields> {
        let log2 = |name: &str| Ok(u32::try_from(control.constant(name)?).unwrap_or(0).min(40));
        Ok(Fields {
            list: List::find(control)?,
            class: Class::find(control)?,
            map: Map::find(control)?,
            slab: Slab::find(control)?,
            harden: Harden::find(control)?,
            guard: Guard::find(control)?,
            guard_table: GuardTable::find(control)?,
            guard_slot: GuardSlot::find(control)?,
            superslab: Super::find(control)?,
            arena: Arena::find(control)?,
            shard: Shard::find(control)?,
            untold: Untold::find(control)?,
            pool: Pool::find(control)?,
            chunk: Chunk::find(control)?,
            magazine: Magazine::find(control)?,
            parcel: Parcel::find(control)?,
            outbox: Outbox::find(control)?,
            class_counts: ClassCounts::find(control)?,
            cache_counts: CacheCounts::find(control)?,
            owner_class: OwnerClass::find(control)?,
            owner: Owner::find(control)?,
            cache: Cache::find(control)?,
            registry: Registry::find(control)?,
            os_counts: OsCounts::find(control)?,
            unit_log2: log2("unit_log2")?,
            super_log2: log2("super_log2")?,
            tag_log2: log2("tag_log2")?,
            map_kept: control.constant("map_kept")?,
            slab_small: control.constant("slab_small")?,
            slab_large: control.constant("slab_large")?,
            guard_live: control.constant("guard_live")?,
            block_kinds: control.constant("block_kinds")?,
            block_free: control.constant("block_free")?,
            owner_dead: control.constant("owner_dead")?,
        })
    }
}
