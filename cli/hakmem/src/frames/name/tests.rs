use super::*;

fn lengths(name: &str) -> [String; 4] {
    [Length::Whole, Length::Name, Length::Bare, Length::Short].map(|length| write(name, length))
}

const STRING: &str =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

#[test]
fn templates_are_written_as_in_the_source() {
    let name =
        "STRING& std::vector<STRING, std::allocator<STRING > >::emplace_back<STRING >(STRING&&)"
            .replace("STRING", STRING);
    assert_eq!(
        lengths(&name),
        [
            "std::string& std::vector<std::string>::emplace_back<std::string>(std::string&&)",
            "std::vector<std::string>::emplace_back<std::string>",
            "std::vector<…>::emplace_back<…>",
            "vector<…>::emplace_back<…>",
        ]
    );
    let map = "std::map<STRING, std::vector<STRING, std::allocator<STRING > >, std::less<STRING >, \
        std::allocator<std::pair<STRING const, std::vector<STRING, std::allocator<STRING > > > > >::operator[](STRING const&)"
        .replace("STRING", STRING);
    assert_eq!(
        lengths(&map)[..2],
        [
            "std::map<std::string, std::vector<std::string>>::operator[](std::string const&)",
            "std::map<std::string, std::vector<std::string>>::operator[]",
        ]
    );
}

#[test]
fn what_is_returned_is_no_part_of_a_name() {
    for (name, short) in [
        (
            "void std::_Construct<int, int&>(int*, int&)",
            "std::_Construct<…>",
        ),
        ("Wide* make_wide<Wide>(int)", "make_wide<…>"),
        (
            "outer::Maker::operator()[abi:cxx11](int) const",
            "Maker::operator()",
        ),
        ("operator new(unsigned long)", "operator new"),
        (
            "operator new[](unsigned long, std::nothrow_t const&)",
            "operator new[]",
        ),
        ("app::Flag::operator bool() const", "Flag::operator bool"),
        (
            "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
            "std::operator<<",
        ),
        ("(anonymous namespace)::pool::pool()", "pool::pool"),
        (
            "app::(anonymous namespace)::hidden(int)",
            "(anonymous namespace)::hidden",
        ),
        (
            "main::{lambda(int)#1}::operator()(int) const",
            "{lambda#1}::operator()",
        ),
        ("main()::<lambda(int)>", "main::<lambda>"),
        ("f(void (*)(int), char)", "f"),
        ("unsigned long hash<int>(int) [clone .isra.0]", "hash<…>"),
    ] {
        assert_eq!(write(name, Length::Short), short, "{name}");
    }
}

#[test]
fn rust_and_go_have_their_own_brackets() {
    for (name, bare, short) in [
        (
            "<alloc::vec::Vec<u8>>::with_capacity",
            "alloc::vec::Vec<…>::with_capacity",
            "Vec<…>::with_capacity",
        ),
        (
            "<r::Square<i32> as r::Shape>::name",
            "<r::Square<…> as r::Shape>::name",
            "<Square<…> as Shape>::name",
        ),
        (
            "alloc::vec::Vec<T,A>::reserve",
            "alloc::vec::Vec<…>::reserve",
            "Vec<…>::reserve",
        ),
        (
            "r::rust_site::{{closure}}",
            "r::rust_site::{{closure}}",
            "rust_site::{{closure}}",
        ),
        (
            "core::iter::collect::<alloc::vec::Vec<u8>>",
            "core::iter::collect<…>",
            "iter::collect<…>",
        ),
        (
            "<fn(u8) -> u8 as core::ops::function::FnOnce<()>>::call_once",
            "<fn -> u8 as core::ops::function::FnOnce<…>>::call_once",
            "<fn -> u8 as FnOnce<…>>::call_once",
        ),
        (
            "github.com/someone/thing/store.(*Store).Add",
            "github.com/someone/thing/store.(*Store).Add",
            "store.(*Store).Add",
        ),
        ("main.main.func1", "main.main.func1", "main.main.func1"),
    ] {
        assert_eq!(write(name, Length::Bare), bare, "{name}");
        assert_eq!(write(name, Length::Short), short, "{name}");
    }
    let map = "<std::collections::hash::map::HashMap<alloc::string::String, u8, std::hash::random::RandomState>>::entry";
    assert_eq!(
        write(map, Length::Name),
        "std::collections::hash::map::HashMap<alloc::string::String, u8>::entry"
    );
}

#[test]
fn what_is_no_name_stays() {
    for name in [
        "a<b",
        "a>b",
        "(((",
        "",
        "program+0x1234",
        "{",
        "f(",
        "…<é>)",
    ] {
        assert_eq!(write(name, Length::Short), name);
    }
    let deep = "f<".repeat(5000);
    assert_eq!(write(&deep, Length::Whole), deep);
}

#[test]
fn comparisons_and_shifts_are_no_brackets() {
    let name = "std::vector<int, std::allocator<int>> cmp<(B>0)>(int)";
    assert_eq!(write(name, Length::Name), "cmp<(B>0)>");
    assert_eq!(write(name, Length::Bare), "cmp<…>");
    let name = "void shift<(N>>1), A<(M<<2)>>(std::vector<int, std::allocator<int>>)";
    assert_eq!(write(name, Length::Name), "shift<(N>>1), A<(M<<2)>>");
    assert_eq!(
        write(name, Length::Whole),
        "void shift<(N>>1), A<(M<<2)>>(std::vector<int>)"
    );
}

#[test]
fn what_is_local_to_a_const_function_begins_with_that() {
    let name = "main::{lambda()#1}::operator()() const::Local::m(int) const";
    assert_eq!(
        write(name, Length::Name),
        "main::{lambda#1}::operator()::Local::m"
    );
    let name = "int Class::get(int) const &::{lambda()#1}::operator()<long>(long) const";
    assert_eq!(
        write(name, Length::Name),
        "Class::get::{lambda#1}::operator()<long>"
    );
}
