//! Shapes: how many differences the members of a family have. A list of members names their shape, so that a search
//! knows how many differences they can have in common with its content.

use std::ops::RangeInclusive;

/// A range of numbers that a shape does not distinguish. Numbers below 16 have ranges of their own. From there
/// on, each power of two begins eight ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountClass {
    first: u32,
}

/// The classes of the numbers of rare and of ranked differences of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberShape {
    rare: CountClass,
    ranked: CountClass,
}

impl CountClass {
    /// The class of a number.
    #[must_use]
    pub fn of(number: u32) -> Self {
        Self { first: number / width(number) * width(number) }
    }

    /// The first number of the class.
    #[must_use]
    pub fn first(self) -> u32 {
        self.first
    }

    /// The numbers of the class.
    #[must_use]
    pub fn numbers(self) -> RangeInclusive<u32> {
        self.first..=self.first + (width(self.first) - 1)
    }

    /// The class that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self { first: self.numbers().end() + 1 }
    }

    /// How far a number is from the nearest one of the class.
    #[must_use]
    pub fn gap(self, number: u32) -> u32 {
        self.first.saturating_sub(number).max(number.saturating_sub(*self.numbers().end()))
    }
}

impl MemberShape {
    /// The shape of a member with so many rare and ranked differences.
    #[must_use]
    pub fn new(rare: u32, ranked: u32) -> Self {
        Self { rare: CountClass::of(rare), ranked: CountClass::of(ranked) }
    }

    /// The class of the number of rare differences.
    #[must_use]
    pub fn rare(self) -> CountClass {
        self.rare
    }

    /// The class of the number of ranked differences.
    #[must_use]
    pub fn ranked(self) -> CountClass {
        self.ranked
    }

    /// A number that names the shape: the first numbers of both classes, that of rare differences in the high half.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(self.rare.first) << 32 | u64::from(self.ranked.first)
    }

    /// The shape that a [number](Self::number) names. `None` if no shape has this number.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        let shape = Self::new((number >> 32) as u32, number as u32);
        (shape.number() == number).then_some(shape)
    }
}

/// How many numbers the class of a number has.
fn width(number: u32) -> u32 {
    (1 << number.max(1).ilog2() >> 3).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_all_numbers() {
        let mut next = 0;
        for _ in 0..120 {
            let class = CountClass::of(next);
            assert_eq!(class.first, next);
            let width = class.numbers().count();
            assert!(class.numbers().step_by(1 + width / 5).all(|number| CountClass::of(number) == class));
            next = class.next().first;
        }
        assert!(next > 1 << 16);
    }
}
